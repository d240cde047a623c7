#include "keeper/counting.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/own.h"
#include "box/host.h"
#include "changes/changes.h"
#include "changes/digest.h"
#include "keeper/apart.h"
#include "keeper/count.h"
#include "keeper/job.h"
#include "keeper/states.h"
#include "keeper/stay.h"
#include "spec/node.h"
#include "trace/step.h"
#include "trace/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    WAITING_MAX = 1024,       /* steps; more are not counted */
    LINE_MAX_BYTES = 1 << 20, /* that the process may send at once */
    CPU_S = 20,
    WALL_S = 60,        /* for all that it was given */
    PAUSE_US = 100000,  /* so that steps that follow at once are counted together, and find us at rest */
    LATEST_US = 500000, /* when they go on following */
    HASHED_BYTES_MAX = 64 << 20, /* of one step */
};

/* --- the process that counts --- */

/* A file whose content is hashed after all were counted. */
struct hashed {
    int upper; /* of `uppers` */
    char *below, *path;
};

struct tally {
    struct step step;
    struct {
        struct hashed *items;
        size_t len, cap;
    } files;
    struct {
        int *items;
        size_t len, cap;
    } uppers;
};

static void tally_free(struct tally *tally)
{
    for (size_t i = 0; i < tally->files.len; i++) {
        free(tally->files.items[i].below);
        free(tally->files.items[i].path);
    }
    for (size_t i = 0; i < tally->uppers.len; i++)
        close(tally->uppers.items[i]);
    free(tally->files.items);
    free(tally->uppers.items);
    step_free(&tally->step);
}

#define autotally __attribute__((cleanup(tally_free)))

static char *inside(const char *target, const char *path)
{
    return text_format("%s/%s", strcmp(target, "/") == 0 ? "" : target, path);
}

static void add_file(struct tally *tally, const struct change *change, enum step_change how, int upper,
                     const char *target)
{
    autofree char *path = inside(target, change->path);
    size_t before = tally->step.end.files.len;

    step_add_file(&tally->step, how, path);
    if (how != STEP_REMOVED && change->new.type == SIDE_FILE && tally->step.end.files.len > before)
        *array_add(&tally->files) = (struct hashed){ upper, text_copy(change->path), steal_ptr(&path) };
}

static void add_change(struct tally *tally, const struct change *change, int upper, const char *target)
{
    static const enum step_change hows[] = {
        [CHANGE_REMOVED] = STEP_REMOVED, [CHANGE_ADDED] = STEP_ADDED,     [CHANGE_CHANGED] = STEP_CHANGED,
        [CHANGE_MODE] = STEP_CHANGED,    [CHANGE_RETYPED] = STEP_CHANGED, [CHANGE_RENAMED] = STEP_ADDED,
    };

    if (change->kind == CHANGE_RENAMED) {
        autofree char *from = inside(target, change->from);

        step_add_file(&tally->step, STEP_REMOVED, from);
    }
    add_file(tally, change, hows[change->kind], upper, target);
    tally->step.end.removed += change->count;
    tally->step.end.files_left_out += change->count;
}

static void found(void *owner, const struct changes *changes, int upper, const char *target)
{
    struct tally *tally = owner;
    int own = fcntl(upper, F_DUPFD_CLOEXEC, 0);

    *array_add(&tally->uppers) = own;
    for (size_t i = 0; i < changes->len; i++)
        add_change(tally, &changes->items[i], own, target);
}

static int write_line(int out, const char *what, struct node *data)
{
    autonode struct node line = { .kind = NODE_MAP };
    autotext struct text text = TEXT_NONE;
    struct node *own = node_add(&line, what, NODE_MAP, NULL);

    *own = (struct node){
        .kind = NODE_MAP, .key = own->key, .items = data->items, .len = data->len, .cap = data->cap
    };
    data->items = NULL;
    data->len = data->cap = 0;
    node_write_json(&line, &text);
    text_add(&text, "\n");
    for (size_t at = 0; at < text.len;) {
        ssize_t wrote = write(out, text.data + at, text.len - at);

        if (wrote < 0 && errno != EINTR)
            return -1;
        at += wrote > 0 ? (size_t)wrote : 0;
    }
    return 0;
}

/* Small ones first would leave out less, but the list is in the order of names, and so is what is left out. */
static void hash_all(const struct tally *tally, struct step_hashes *out)
{
    uint64_t left = HASHED_BYTES_MAX;

    out->number = tally->step.number;
    out->left_out = tally->step.end.files_left_out;
    for (size_t i = 0; i < tally->files.len; i++) {
        const struct hashed *file = &tally->files.items[i];
        struct step_hash hash = { .path = text_copy(file->path) };
        char text[SHA256_TEXT];

        if (digest_plain(file->upper, file->below, left, text, &hash.bytes) < 0) {
            free(hash.path);
            out->left_out++;
            continue;
        }
        left -= hash.bytes;
        hash.sha256 = text_copy(text);
        *array_add(&out->files) = hash;
    }
}

static int count_one(const struct count *all, const struct counting_step *step, int out, struct error *err)
{
    autotally struct tally tally = { .step = STEP_NONE };
    autonode struct node changed = NODE_NONE, hashed = NODE_NONE;
    struct step_hashes hashes = STEP_HASHES_NONE;
    struct count count = *all;

    tally.step.number = step->number;
    tally.step.end.checkpoint = text_copy(step->layer);
    count.owner = &tally;
    if (count_layer(&count, step->layer, step->before, err) < 0)
        return -1;
    step_changed_node(&tally.step, &changed);
    if (write_line(out, "changed", &changed) < 0)
        return error_sys(err, "tell the keeper");
    hash_all(&tally, &hashes);
    step_hashes_node(&hashes, &hashed);
    step_hashes_free(&hashes);
    return write_line(out, "files", &hashed) < 0 ? error_sys(err, "tell the keeper") : 0;
}

struct work {
    const struct counting *counting;
    int out;
};

/* One that cannot be counted keeps no other from it. */
static int count_all(void *argument)
{
    const struct work *work = argument;
    const struct stay *stay = work->counting->stay;
    const struct counting_steps *steps = &work->counting->under_way;
    struct count count = { .state = stay->host->state, .plan = stay->plan, .found = found };
    struct error err;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (showing_enter(stay->host->state, &count.stage, &err) < 0)
        return -1;
    for (size_t i = 0; i < steps->len; i++)
        (void)count_one(&count, &steps->items[i], work->out, &err);
    return 0;
}

static void bound(void)
{
    struct rlimit cpu = { CPU_S, CPU_S };
    sigset_t none;

    (void)setpriority(PRIO_PROCESS, 0, 19);
    (void)setrlimit(RLIMIT_CPU, &cpu);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGALRM, SIG_DFL);
    (void)alarm(WALL_S);
}

/* Nothing of the keeper's is kept open, above all not the lock of the sandbox. */
static _Noreturn void be_counter(const struct counting *counting, int out, pid_t keeper)
{
    struct work work = { counting, out };
    struct error ignored;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != keeper)
        _exit(1);
    prctl(PR_SET_NAME, "cove-count");
    apart_close_others(&out, 1);
    bound();
    _exit(count_apart(counting->stay->plan, count_all, &work, &ignored) < 0 ? 1 : 0);
}

/* --- the keeper's side --- */

static void write_unknown(struct counting *counting, const struct counting_step *step)
{
    autostep struct step record = STEP_NONE;
    struct error ignored;

    record.number = step->number;
    record.end.added = record.end.changed = record.end.removed = MEMBER_NO_NUMBER;
    record.end.checkpoint = text_copy(step->layer);
    (void)step_write_changed(counting->jobs->trace, &record, &ignored);
}

static void write_rest(struct counting *counting, struct counting_steps *steps)
{
    for (size_t i = 0; i < steps->len; i++)
        if (!steps->items[i].told)
            write_unknown(counting, &steps->items[i]);
    steps->len = 0;
}

static struct counting_step *find(struct counting *counting, uint64_t number)
{
    for (size_t i = 0; i < counting->under_way.len; i++)
        if (counting->under_way.items[i].number == number)
            return &counting->under_way.items[i];
    return NULL;
}

/* It has met bytes of the sandbox, so of what it says only the form that we know is taken. */
static void take_changed(struct counting *counting, const struct node *data)
{
    autostep struct step read = STEP_NONE;
    struct error ignored;

    if (!step_changed_read(data, &read))
        return;

    struct counting_step *step = find(counting, read.number);

    if (!step || step->told || !read.end.checkpoint || strcmp(read.end.checkpoint, step->layer) != 0)
        return;
    step->told = step_write_changed(counting->jobs->trace, &read, &ignored) == 0;
}

static void take_hashes(struct counting *counting, const struct node *data)
{
    struct step_hashes hashes = STEP_HASHES_NONE;
    struct error ignored;

    if (step_hashes_read(data, &hashes)) {
        const struct counting_step *step = find(counting, hashes.number);

        if (step && step->told)
            (void)step_write_hashes(counting->jobs->trace, &hashes, &ignored);
    }
    step_hashes_free(&hashes);
}

static void take_line(struct counting *counting, const char *line, size_t len)
{
    autonode struct node node = NODE_NONE;
    struct error ignored;

    if (node_read_json(line, len, "what was counted", &node, &ignored) < 0 || node.kind != NODE_MAP)
        return;

    const struct node *changed = node_get(&node, "changed"), *files = node_get(&node, "files");

    if (changed && changed->kind == NODE_MAP)
        take_changed(counting, changed);
    else if (files && files->kind == NODE_MAP)
        take_hashes(counting, files);
}

static void take_lines(struct counting *counting)
{
    struct text *heard = &counting->heard;
    size_t from = 0;
    const char *end;

    while (from < heard->len && (end = memchr(heard->data + from, '\n', heard->len - from))) {
        take_line(counting, heard->data + from, (size_t)(end - heard->data) - from);
        from = (size_t)(end - heard->data) + 1;
    }
    if (from) {
        memmove(heard->data, heard->data + from, heard->len - from);
        text_cut(heard, heard->len - from);
    }
}

static void finish_child(struct counting *counting)
{
    loop_remove(counting->jobs->loop, &counting->source);
    own_close(&counting->source.fd);
    while (waitpid(counting->child, NULL, 0) < 0 && errno == EINTR)
        continue;
    counting->child = 0;
    text_cut(&counting->heard, 0);
    write_rest(counting, &counting->under_way);
}

/* False: nothing more is there by now. */
static bool hear(struct counting *counting)
{
    char bytes[16 << 10];
    ssize_t got = read(counting->source.fd, bytes, sizeof bytes);

    if (got < 0)
        return errno == EINTR;
    text_add_bytes(&counting->heard, bytes, (size_t)got);
    take_lines(counting);
    if (counting->heard.len > LINE_MAX_BYTES)
        kill(counting->child, SIGKILL);
    if (got > 0)
        return true;
    finish_child(counting);
    return false;
}

static void ready(void *owner, short revents)
{
    struct counting *counting = owner;

    (void)revents;
    while (counting->child && hear(counting))
        continue;
}

static void start(struct counting *counting)
{
    struct counting_steps none = counting->under_way;
    int ends[2];

    if (counting->child || !counting->waiting.len)
        return;
    counting->under_way = counting->waiting;
    counting->waiting = none; /* it is empty */
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0) {
        write_rest(counting, &counting->under_way);
        return;
    }
    pid_t keeper = getpid();

    counting->child = fork();
    if (counting->child == 0) {
        (void)fcntl(ends[1], F_SETFL, 0);
        be_counter(counting, ends[1], keeper);
    }
    close(ends[1]);
    if (counting->child < 0) {
        counting->child = 0;
        close(ends[0]);
        write_rest(counting, &counting->under_way);
        return;
    }
    counting->source =
        (struct loop_source){ .fd = ends[0], .events = POLLIN, .ready = ready, .owner = counting };
    loop_add(counting->jobs->loop, &counting->source);
}

void counting_add(struct counting *counting, uint32_t number, const char *layer, const char *before)
{
    struct counting_step step = { .number = number };

    snprintf(step.layer, sizeof step.layer, "%s", layer);
    snprintf(step.before, sizeof step.before, "%s", before);
    if (counting->waiting.len >= WAITING_MAX) {
        write_unknown(counting, &step);
        return;
    }
    counting->last = clock_us();
    if (!counting->waiting.len)
        counting->first = counting->last;
    *array_add(&counting->waiting) = step;
}

static uint64_t due(const struct counting *counting)
{
    uint64_t rest = counting->last + PAUSE_US, latest = counting->first + LATEST_US;

    return rest < latest ? rest : latest;
}

void counting_tend(struct counting *counting)
{
    if (!counting->child && counting->waiting.len && clock_us() >= due(counting))
        start(counting);
}

int counting_patience(const struct counting *counting)
{
    uint64_t now = clock_us();

    if (counting->child || !counting->waiting.len)
        return -1;
    return now >= due(counting) ? 0 : (int)((due(counting) - now) / 1000) + 1;
}

void counting_recover(struct counting *counting)
{
    autosteps struct steps steps = STEPS_NONE;
    autostates struct states states = STATES_NONE;
    struct error ignored;

    if (steps_read(counting->jobs->dir, true, &steps, &ignored) < 0 ||
        states_read(counting->jobs->dir, &states, &ignored) < 0)
        return;
    for (size_t i = 0; i < steps.len; i++) {
        const struct step *step = &steps.items[i];
        char before[ID_LENGTH + 1];
        uint64_t after;

        if (step->state != STEP_IS_OVER || step->looked || !step->end.checkpoint ||
            !store_is_id(step->end.checkpoint))
            continue;
        if (states_begin(&states, step->number, &after, before, &ignored) < 0)
            *before = '\0';
        counting_add(counting, (uint32_t)step->number, step->end.checkpoint, before);
    }
}

void counting_settle(struct counting *counting, unsigned patience_ms)
{
    uint64_t until = clock_us() + (uint64_t)patience_ms * 1000;

    while (clock_us() < until) {
        if (!counting->child)
            start(counting);
        if (!counting->child)
            break;

        struct pollfd one = { .fd = counting->source.fd, .events = POLLIN };

        if (poll(&one, 1, (int)((until - clock_us()) / 1000) + 1) > 0)
            ready(counting, one.revents);
    }
    if (counting->child) {
        kill(counting->child, SIGKILL);
        finish_child(counting);
    }
    write_rest(counting, &counting->waiting);
    free(counting->waiting.items);
    free(counting->under_way.items);
    text_free(&counting->heard);
    *counting = COUNTING_NONE;
}
