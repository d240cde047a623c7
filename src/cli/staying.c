/* The keeper is a child of ours that outlives us: it parses nothing more, takes its own place in the system,
 * and tells us once what came of it. */

#include "cli/staying.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "box/box.h"
#include "box/environment.h"
#include "box/plan.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "cli/copying.h"
#include "cli/run.h"
#include "cli/say.h"
#include "gateway/rules.h"
#include "init/wire.h"
#include "keeper/apart.h"
#include "keeper/control.h"
#include "keeper/entrance.h"
#include "keeper/held.h"
#include "keeper/keep.h"
#include "keeper/reel.h"
#include "keeper/resume.h"
#include "keeper/stay.h"
#include "keeper/trust.h"
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROLLBACK_PATIENCE_MS = 2000 }; /* that commands have to end by themselves */

/* What the keeper tells us, once. */
struct news {
    struct error error;  /* ERROR_NONE: it runs */
    struct error failed; /* then, a service that does not; ERROR_NONE: all do */
    char id[ID_LENGTH + 1];
};

/* Everything a keeper starts from. */
struct begin {
    struct context context;
    struct plan plan;
    struct sandbox_dir dir;
    struct box box;
    struct record record;
    const struct record *old;       /* of one that is started again; NULL: it is new */
    const struct strings *readonly; /* paths inside that must be so; NULL: none */
    struct timespec created;
    uint64_t ttl_ms, idle_ms;
    struct trust_ahead ahead;
    int news;
};

static bool tell(struct begin *begin, const struct error *error, const struct error *failed)
{
    struct news news = { 0 };

    if (error)
        news.error = *error;
    if (failed)
        news.failed = *failed;
    memcpy(news.id, begin->dir.id, sizeof news.id);

    bool heard = send(begin->news, &news, sizeof news, MSG_NOSIGNAL) == (ssize_t)sizeof news;

    close(steal_fd(&begin->news));
    return heard;
}

/* Whoever started us must not wait for us: what it reads is at its end when nobody has it open any more. */
static void leave_stdio(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    for (int fd = 0; fd < 3 && null >= 0; fd++)
        dup2(null, fd);
    if (null > 2)
        close(null);
    (void)!chdir("/");
}

/* Nobody knows the id of a new one whose maker was killed before it could hear it. */
static bool ready(void *owner, const struct error *failed)
{
    struct begin *begin = owner;

    leave_stdio();
    return tell(begin, NULL, failed) || begin->old;
}

/* What lies on a copy needs its workspace no more. */
static int recall(void *owner, const struct host *host, struct workspace *workspace, struct trees *trees,
                  struct error *err)
{
    const struct begin *begin = owner;

    return begin->old ? copying_recall(begin->old, host->state, &begin->dir, workspace, trees, err) : 1;
}

static int check_readonly(const struct begin *begin, struct error *err)
{
    for (size_t i = 0; begin->readonly && i < begin->readonly->len; i++) {
        const char *target = begin->readonly->items[i];
        const struct tree *tree = trees_at(&begin->plan.trees, target);

        if (!tree || tree->mode != TREE_RO)
            return error_set(err, ERROR_REFUSED, "%.200s cannot be laid over the sandbox: policy forbids it",
                             target);
    }
    return 0;
}

static int make_plan(struct begin *begin, struct error *err)
{
    struct context *context = &begin->context;

    context->recall = recall;
    context->owner = begin;
    if (context_read(context, err) < 0)
        return -1;
    if (context->spec.workspace == WORKSPACE_LIVE || context->spec.workspace == WORKSPACE_RW)
        return error_set(
            err, ERROR_REFUSED,
            "--workspace live and rw are for `cove run`: what stays brings its changes home by `cove apply`");
    if (context->spec.remove)
        return error_set(err, ERROR_INVALID, "--rm is for `cove run`: what stays is removed by `cove rm`");
    if (begin->old && begin->old->shifted)
        context->host.id_base = (uint32_t)begin->old->base;
    if (plan_build(&context->spec, &context->host, &context->workspace, &context->trees, &begin->plan, err) <
            0 ||
        check_readonly(begin, err) < 0)
        return -1;
    begin->plan.limits.freezable = true;
    begin->plan.stays = true;
#ifdef COVE_UNSAFE
    unsafe_apply(&begin->plan);
#endif
    return begin->old ? resume_prepare(&context->host, begin->old, &begin->dir, &begin->plan, err) : 0;
}

static int prepare(void *owner, struct sandbox_dir *dir, struct error *err)
{
    struct begin *begin = owner;
    const char *state = begin->context.host.state;

    if (begin->plan.workspace_mode != WORKSPACE_COPY)
        return 0;
    return begin->old ? copying_use(&begin->plan, state, dir, err)
                      : copying_take(&begin->plan, state, dir, !begin->context.options.run.no_checkpoints, err);
}

static struct keep_about about(const struct begin *begin)
{
    const struct run_options *options = &begin->context.options.run;

    return (struct keep_about){ .plan = &begin->plan,
                                .spec = &begin->context.spec,
                                .name = options->name,
                                .labels = &options->labels,
                                .stays = true,
                                .ttl_ms = begin->ttl_ms,
                                .idle_ms = begin->idle_ms,
                                .then = options->then,
                                .no_checkpoints = options->no_checkpoints,
                                .created = begin->created };
}

static int write_spec(const struct begin *begin, struct error *err)
{
    autotext struct text json = TEXT_NONE;

    spec_json(&begin->context.spec, &json);
    return store_write_file(begin->dir.fd, STORE_SPEC, text_string(&json), json.len, err);
}

static int enter(struct begin *begin, struct error *err)
{
    struct entrance entrance = { &begin->context.host, &begin->plan, prepare, begin };
    struct keep_about subject = about(begin);

    if (entrance_enter(&entrance, &begin->dir, &begin->box, err) < 0)
        return -1;
    if (begin->old ? keep_again(&subject, begin->old, &begin->dir, &begin->record, err) == 0
                   : write_spec(begin, err) == 0 && keep_begin(&subject, &begin->dir, &begin->record, err) == 0)
        return 0;
    box_end(&begin->box);
    return -1;
}

/* One that was never there is not left behind; of one that was, the record says again that it has stopped. */
static void give_up(struct begin *begin)
{
    struct error ignored;

    box_end(&begin->box);
    if (begin->dir.fd < 0)
        return;
    if (!begin->old) {
        (void)store_remove(&begin->dir, &ignored);
        copying_drop(begin->context.host.state, begin->dir.id);
    } else {
        (void)record_write(begin->dir.fd, begin->old, &ignored);
    }
}

static int keep(struct begin *begin, struct error *err)
{
    const struct spec *spec = &begin->context.spec;
    struct error ignored;

    clock_gettime(CLOCK_REALTIME, &begin->created);
    (void)box_open_freezable(plan_own_namespaces, geteuid() != 0, &begin->box, &ignored);

    int planned = make_plan(begin, err);

    trust_heed(begin->ahead.done);
    own_close(&begin->ahead.done);
    if (planned < 0 || enter(begin, err) < 0)
        return -1;

    autorules struct rules rules = RULES_NONE;
    autoreel struct reel reel = REEL_NONE;

    if (context_rules(&begin->context, &rules, err) < 0 ||
        context_reel(&begin->context, &begin->plan.trees, begin->old != NULL, &reel, err) < 0) {
        box_end(&begin->box);
        return -1;
    }
    environment_default(&begin->plan.env, &rules.variables);
    const struct registry_places registries = context_registries(&begin->context);

    return stay_run(&(struct stay){ .host = &begin->context.host,
                                    .plan = &begin->plan,
                                    .dir = &begin->dir,
                                    .box = &begin->box,
                                    .record = &begin->record,
                                    .rules = &rules,
                                    .reel = &reel,
                                    .registries = &registries,
                                    .timeout_ms = begin->context.spec.timeout_ms,
                                    .services = &begin->context.spec.services,
                                    .bounds = { .keep = spec->checkpoints.keep.max,
                                                .space = spec->checkpoints.space.max,
                                                .live_bytes = spec->checkpoints.live_bytes.max,
                                                .live_files = spec->checkpoints.live_files.max },
                                    .ready = ready,
                                    .owner = begin },
                    err);
}

static _Noreturn void be_keeper(struct begin *begin)
{
    struct error err;
    sigset_t old;

    setsid();
    prctl(PR_SET_NAME, "cove-keeper");
    /* A lock or a pipe that whoever called us holds open would be held for days. */
    apart_close_others((int[]){ begin->news, begin->dir.fd, begin->dir.parent, begin->ahead.done }, 4);
    held_begin(&old);
    if (keep(begin, &err) == 0)
        _exit(0);
    if (begin->news >= 0) {
        give_up(begin);
        (void)tell(begin, &err, NULL);
    }
    _exit(EXIT_OWN_ERROR);
}

static int hear(int news_fd, struct news *out, struct error *err)
{
    ssize_t got;

    while ((got = recv(news_fd, out, sizeof *out, 0)) < 0 && errno == EINTR)
        continue;
    if (got != (ssize_t)sizeof *out)
        return error_set(err, ERROR_SYSTEM, "the keeper of the sandbox died before it was ready");
    if (out->error.kind == ERROR_NONE && out->failed.kind == ERROR_NONE)
        return 0;
    *err = out->error.kind == ERROR_NONE ? out->failed : out->error;
    return out->error.kind == ERROR_NONE ? 1 : -1;
}

/* Forked twice, so that nobody has to wait for it. */
static int begin_keeper(struct begin *begin, struct news *news, struct error *err)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return error_sys(err, "make sockets");
    pid_t child = fork();

    if (child == 0) {
        close(pair[0]);
        begin->news = pair[1];
        if (fork() == 0)
            be_keeper(begin);
        _exit(0);
    }
    close(pair[1]);
    autoclose int mine = pair[0];

    if (child < 0)
        return error_sys(err, "fork the keeper");
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        continue;
    return hear(mine, news, err);
}

static void begin_free(struct begin *begin)
{
    trust_await(&begin->ahead);
    context_free(&begin->context);
    own_close(&begin->dir.fd);
    own_close(&begin->dir.parent);
}

static int read_rest(struct begin *begin, struct error *err)
{
    static const char *const choices[] = { "stop", "pause", "remove" };
    const struct run_options *options = &begin->context.options.run;

    if ((options->ttl && options_duration("ttl", options->ttl, &begin->ttl_ms, err) < 0) ||
        (options->idle && options_duration("idle", options->idle, &begin->idle_ms, err) < 0))
        return -1;
    for (size_t i = 0; options->then && i < ARRAY_LEN(choices); i++)
        if (strcmp(options->then, choices[i]) == 0)
            return 0;
    return options->then
               ? error_set(err, ERROR_INVALID, "--then %.40s: must be stop, pause or remove", options->then)
               : 0;
}

int staying_create(struct options *options, char id[ID_LENGTH + 1], struct error *err)
{
    struct begin begin = {
        .dir = SANDBOX_DIR_NONE, .box = BOX_NONE, .record = RECORD_NONE, .ahead = TRUST_AHEAD_NONE, .news = -1
    };
    struct news news;

    begin.context.options = options_take(options);

    struct keep_about subject = about(&begin);
    int result = keep_check(&subject, err) < 0 || read_rest(&begin, err) < 0 ? -1 : 0;

    if (result == 0)
        result = begin_keeper(&begin, &news, err);
    if (result >= 0)
        memcpy(id, news.id, sizeof news.id);
    begin_free(&begin);
    return result;
}

int staying_open(const struct which *which, const struct kept *kept, struct sandbox_dir *out, struct error *err)
{
    enum { GUARD_MS = 10000 }; /* a guard may still be at work on one that has just stopped */
    autoclose int fd = kept_open(&which->all, kept, err), parent = fcntl(which->all.parent, F_DUPFD_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    if (store_hold(fd, GUARD_MS) < 0)
        return error_set(err, ERROR_REFUSED, "sandbox %s is running", kept_word(kept).text);
    if (kept_renew(&which->all, kept, fd, err) < 0)
        return -1;
    store_tidy(fd); /* a work directory serves one overlay only */
    out->fd = steal_fd(&fd);
    out->parent = steal_fd(&parent);
    memcpy(out->id, kept->id, sizeof out->id);
    return 0;
}

/* The spec is what it was; what an administrator has forbidden since counts. */
static int options_of_old(const struct host *host, const struct begin *begin, struct strings *words,
                          struct options *out, struct error *err)
{
    strings_add(words, "create");
    strings_add(words, "--spec");
    strings_take(words, text_format("%s/sandboxes/%s/" STORE_SPEC, host->state, begin->dir.id));
    strings_add(words, "--directory");
    strings_add(words, begin->old->cwd);
    return options_parse(command_find("create"), (int)words->len, words->items, out, err);
}

static int check_stays(const struct record *record, struct error *err)
{
    if (record->stays)
        return 0;
    error_set(err, ERROR_REFUSED, "sandbox %.*s was made by `cove run`, and its command has ended",
              KEPT_ID_SHOWN, record->id);
    if (record->name)
        return error_hint(err, "go on in it: cove run --name %s -- COMMAND", record->name);
    return error_hint(err, "in the last one of a work tree cove run --continue -- COMMAND goes on");
}

/* With its directory in hand. */
static int begin_again(const struct host *host, struct begin *begin, struct error *err)
{
    autostrings struct strings words = STRINGS_NONE;
    struct news news;

    if (keep_check_spec(begin->dir.fd, begin->old, err) < 0 ||
        options_of_old(host, begin, &words, &begin->context.options, err) < 0)
        return -1;
    return begin_keeper(begin, &news, err);
}

void staying_ahead(const struct record *record, int dir, struct trust_ahead *out)
{
    if (strcmp(record->image, "host") == 0)
        trust_ahead(dir, out);
}

int staying_start(const struct which *which, const struct kept *kept, struct error *err)
{
    return staying_start_with(which, kept, NULL, err);
}

int staying_start_with(const struct which *which, const struct kept *kept, const struct strings *readonly,
                       struct error *err)
{
    struct begin begin = { .dir = SANDBOX_DIR_NONE, .box = BOX_NONE, .record = RECORD_NONE, .news = -1 };

    begin.old = &kept->record;
    begin.readonly = readonly;
    begin.ahead = TRUST_AHEAD_NONE;
    if (check_stays(&kept->record, err) < 0)
        return -1;

    int result = staying_open(which, kept, &begin.dir, err);

    if (result == 0) {
        staying_ahead(begin.old, begin.dir.fd, &begin.ahead);
        result = begin_again(&which->host, &begin, err);
    }
    begin_free(&begin);
    return result;
}

int staying_start_new(const struct host *host, const struct record *record, struct sandbox_dir *dir,
                      struct trust_ahead *ahead, struct error *err)
{
    struct begin begin = {
        .dir = *dir, .box = BOX_NONE, .record = RECORD_NONE, .old = record, .ahead = *ahead, .news = -1
    };
    int result = check_stays(record, err);

    *dir = SANDBOX_DIR_NONE;
    *ahead = TRUST_AHEAD_NONE;
    if (result == 0)
        result = begin_again(host, &begin, err);
    begin_free(&begin);
    return result;
}

static int not_staying(const struct kept *kept, struct error *err)
{
    error_set(err, ERROR_REFUSED,
              "sandbox %s was made by `cove run`, for one command; `cove create` makes one that stays",
              kept_word(kept).text);
    if (kept->record.name && !kept_is_alive(kept))
        error_hint(err, "go on in this one: cove run --name %s -- COMMAND", kept->record.name);
    return -1;
}

int staying_connect(const struct which *which, const struct kept *kept, struct error *err)
{
    autoclose int dir = kept_open(&which->all, kept, err);
    int fd = dir < 0 ? -1 : control_connect(dir, err);

    if (fd >= 0 || dir < 0 || err->kind != ERROR_MISSING)
        return fd;
    if (kept_check_whole(kept, err) < 0)
        return -1;
    if (!kept->record.stays)
        return not_staying(kept, err);
    const char *why = kept->state == KEPT_STOPPED ? kept->record.why : NULL;

    error_set(err, ERROR_REFUSED, "sandbox %s does not run%s%.300s", kept_word(kept).text, why ? ": " : "",
              why ? why : "");
    return error_hint(err, "start it: cove start %s", kept_word(kept).text);
}

/* Asks for something that is answered by DONE when it is done. */
static int ask_for(const struct which *which, const struct kept *kept, struct control *message, const int *sent,
                   size_t sent_len, struct error *err)
{
    autoclose int fd = staying_connect(which, kept, err);
    int fds[PROTOCOL_FDS_MAX];
    size_t count = 0;

    if (fd < 0)
        return -1;
    if (control_send(fd, message, sent, sent_len) < 0)
        return error_sys(err, "ask the keeper of the sandbox");

    int got = control_receive(fd, message, fds, &count, err);

    for (size_t i = 0; i < count; i++)
        close(fds[i]);
    if (got == WIRE_MESSAGE && message->kind == CONTROL_DONE)
        return 0;
    if (got == WIRE_MESSAGE)
        *err = message->error;
    return got < 0 || got == WIRE_MESSAGE
               ? -1
               : error_set(err, ERROR_SYSTEM, "the keeper died before it had answered");
}

static int ask(const struct which *which, const struct kept *kept, struct control message, struct error *err)
{
    return ask_for(which, kept, &message, NULL, 0, err);
}

int staying_policy(const struct which *which, const struct kept *kept, const int fds[2], struct error *err)
{
    struct control message = CONTROL(CONTROL_POLICY);

    return ask_for(which, kept, &message, fds, 2, err);
}

int staying_stop(const struct which *which, const struct kept *kept, uint64_t patience_ms, struct error *err)
{
    struct control message = CONTROL(CONTROL_STOP);

    message.timeout_ms = patience_ms;
    return ask(which, kept, message, err);
}

int staying_discard(const struct which *which, const struct kept *kept, struct error *err)
{
    struct control message = CONTROL(CONTROL_STOP);

    message.flags = CONTROL_DISCARD;
    return ask(which, kept, message, err);
}

int staying_pause(const struct which *which, const struct kept *kept, bool paused, struct error *err)
{
    return ask(which, kept, CONTROL(paused ? CONTROL_PAUSE : CONTROL_RESUME), err);
}

bool staying_is_kept(const struct which *which, const struct kept *kept)
{
    struct error ignored;

    return ask(which, kept, CONTROL(CONTROL_STATUS), &ignored) == 0;
}

int staying_rollback(const struct which *which, const struct kept *kept, const char *layer, uint64_t step,
                     struct error *err)
{
    struct control message = CONTROL(CONTROL_ROLLBACK);

    snprintf(message.layer, sizeof message.layer, "%s", layer);
    message.step = step;
    message.timeout_ms = ROLLBACK_PATIENCE_MS;
    return ask(which, kept, message, err);
}

int staying_undo(const struct which *which, const struct kept *kept, const char *layer, uint64_t step,
                 uint64_t undone, struct error *err)
{
    struct control message = CONTROL(CONTROL_UNDO);

    snprintf(message.layer, sizeof message.layer, "%s", layer);
    message.step = step;
    message.undone = (uint32_t)undone;
    return ask(which, kept, message, err);
}

int staying_checkpoint(const struct which *which, const struct kept *kept, char layer[ID_LENGTH + 1],
                       struct error *err)
{
    struct control message = CONTROL(CONTROL_CHECKPOINT);

    if (ask_for(which, kept, &message, NULL, 0, err) < 0)
        return -1;
    if (!store_is_id(message.layer))
        return error_set(err, ERROR_SYSTEM, "the keeper has made no checkpoint");
    if (layer)
        memcpy(layer, message.layer, ID_LENGTH + 1);
    return 0;
}
