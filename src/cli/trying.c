#include "cli/trying.h"

#include "base/delivery.h"
#include "base/error.h"
#include "base/linediff.h"
#include "base/own.h"
#include "base/text.h"
#include "changes/patch.h"
#include "changes/review.h"
#include "cli/changed.h"
#include "cli/run.h"
#include "cli/staying.h"
#include "explore/score.h"
#include "explore/tried.h"
#include "keeper/client.h"
#include "keeper/files.h"
#include "keeper/files_session.h"
#include "keeper/keep.h"
#include "store/output_read.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { PATCH_MAX = 64 << 20 };

/* The score's own programs and settings: what the try put into its home, or where it is found first, is not
 * among them.  /dev/shm is new with each start. */
static const char *const score_place[] = { "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                                           "HOME=/dev/shm/score" };
static const char score_script[] = "mkdir -p \"$HOME\" && exec /bin/sh -c \"$0\"";

#ifdef COVE_UNSAFE
static bool is_guarded(const char *guard)
{
    return !unsafe_without(guard);
}
#else
static bool is_guarded(const char *guard)
{
    (void)guard;
    return true;
}
#endif

static char *inert(const char *string, size_t most)
{
    autofree char *cut = text_format("%.*s", (int)most, string);
    struct text out = TEXT_NONE;

    text_add_inert(&out, cut);
    return text_steal(&out);
}

static void set_error(struct tried *tried, const struct error *err)
{
    free(tried->error);
    tried->error = inert(err->text, sizeof err->text);
}

static void set_failed(struct tried *tried, const struct error *err)
{
    free(tried->reason);
    tried->reason = text_copy("failed");
    tried->exit_code = EXIT_OUR_ERROR;
    set_error(tried, err);
}

/* --- a command in a sandbox --- */

static int start(const char *id, const struct strings *readonly, struct error *err)
{
    autowhich struct which which = WHICH_NONE;
    const struct kept *kept = which_read_for(&which, id, err) < 0 ? NULL : which_sandbox(&which, id, err);

    /* A try without its services is none. */
    return kept && staying_start_with(&which, kept, readonly, err) == 0 ? 0 : -1;
}

/* Also one that ends by itself at this moment, and has no door any more. */
static int halt(const char *id, struct error *err)
{
    enum { PATIENCE_MS = 10000, BEAT_MS = 10 };

    for (int waited = 0;; waited += BEAT_MS) {
        autowhich struct which which = WHICH_NONE;
        const struct kept *kept = which_read_for(&which, id, err) < 0 ? NULL : which_sandbox(&which, id, err);

        if (!kept)
            return -1;
        if (!kept_is_alive(kept))
            return 0;
        if (staying_stop(&which, kept, 0, err) < 0 && waited >= PATIENCE_MS)
            return -1;
        poll(NULL, 0, BEAT_MS);
    }
}

static int connect_to(const char *id, struct error *err)
{
    autowhich struct which which = WHICH_NONE;
    const struct kept *kept = which_read_for(&which, id, err) < 0 ? NULL : which_sandbox(&which, id, err);

    return kept ? staying_connect(&which, kept, err) : -1;
}

static int execute(const char *id, struct client *client, uint64_t *step, struct result *result,
                   struct error *err)
{
    autoclose int keeper = connect_to(id, err), null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (keeper < 0)
        return -1;
    client->keeper = keeper;
    client->in = -1;
    client->out = client->err = null;
    return client_run(client, step, result, err);
}

/* --- what it wrote --- */

struct tail {
    struct text text;
    bool only_stdout;
};

static int add_output(void *owner, const struct output_event *event)
{
    struct tail *tail = owner;
    size_t before = tail->text.len;

    if (event->kind != OUTPUT_BYTES || (tail->only_stdout && event->stream != OUTPUT_STDOUT))
        return 0;
    text_add_bytes(&tail->text, event->bytes, event->len);
    for (size_t i = before; i < tail->text.len; i++)
        if (!tail->text.data[i])
            tail->text.data[i] = '?';
    return 0;
}

/* Output is bounded in the store, so all of what is kept fits into memory. */
static void read_output(const char *id, uint64_t step, bool only_stdout, struct text *out)
{
    autowhich struct which which = WHICH_NONE;
    struct tail tail = { .only_stdout = only_stdout };
    struct error ignored;
    const struct kept *kept = which_read(&which, &ignored) < 0 ? NULL : which_sandbox(&which, id, &ignored);
    autoclose int dir = kept ? kept_open(&which.all, kept, &ignored) : -1;

    if (dir >= 0)
        (void)output_read(dir, step, add_output, &tail, &ignored);
    *out = tail.text;
}

/* Where the last `count` lines begin; those without a blank in front of their end are not counted. */
static const char *last_lines(char *text, size_t len, unsigned count)
{
    while (len && text[len - 1] == '\n')
        text[--len] = '\0';
    for (size_t at = len; at > 0; at--)
        if (text[at - 1] == '\n' && --count == 0)
            return text + at;
    return text;
}

static void add_tail(const char *id, uint64_t step, struct strings *out)
{
    autotext struct text all = TEXT_NONE;

    read_output(id, step, false, &all);
    if (!all.len)
        return;

    autofree char *copy = text_copy(last_lines(all.data, all.len, TRIED_TAIL));

    for (char *rest = copy, *line; (line = strsep(&rest, "\n"));)
        strings_take(out, inert(line, TRIED_TAIL_LINE));
}

/* --- what it changed --- */

/* What git ignores is no part of it: a try is not worse for having built something. */
static void count_changes(const struct changed *changed, const struct review *review, struct tried *out)
{
    struct patch_source source = { changed->upper, changed->base, true };

    for (size_t i = 0; i < changed->changes.len; i++) {
        struct linediff_count count = { 0 };

        if (review->items[i].folded)
            continue;
        out->files++;
        if (patch_count(&source, &changed->changes.items[i], &count)) {
            out->added += count.added;
            out->removed += count.removed;
        }
    }
}

static int write_patch(const struct trying *trying, const struct changed *changed, const struct review *review,
                       const struct tried *tried, struct error *err)
{
    struct patch_source source = { changed->upper, changed->base, false };
    autofree char *task = tried->task ? text_format("%llu-", (unsigned long long)tried->task) : text_copy("");
    autofree char *path =
        text_format("%s/%s%llu.patch", trying->diffs, task, (unsigned long long)tried->number);
    autotext struct text text = TEXT_NONE;

    for (size_t i = 0; i < changed->changes.len && text.len <= PATCH_MAX; i++)
        if (!review->items[i].folded)
            patch_add(&source, &changed->changes, i, &text);
    if (text.len > PATCH_MAX)
        text_add(&text, "# the rest was left out: it is too much\n");

    autodelivery struct delivery place = DELIVERY_NONE;

    return delivery_open(path, &place, err) < 0 ? -1 : delivery_put(&place, text_string(&text), text.len, err);
}

static void look_at_changes(const struct trying *trying, const char *id, struct tried *out)
{
    autochanged struct changed changed = CHANGED_NONE;
    autoreview struct review review = REVIEW_NONE;
    autostrings struct strings words = STRINGS_NONE, tampered = STRINGS_NONE;
    struct changed_wish wish = { .words = &words };
    struct error err;

    strings_add(&words, id);
    if (changed_read(&wish, &changed, &err) < 0) {
        set_failed(out, &err);
        return;
    }
    changed_review(&changed, false, &review);
    count_changes(&changed, &review, out);
    if (trying->diffs && write_patch(trying, &changed, &review, out, &err) < 0)
        set_error(out, &err);
    scorefiles_tampered(trying->files, &changed.changes, &tampered);
    for (size_t i = 0; i < tampered.len && i < TRIED_PATHS; i++)
        strings_take(&out->tampered, inert(tampered.items[i], TRIED_TAIL_LINE));
}

/* --- the try --- */

static void set_result(struct tried *tried, const struct result *result)
{
    tried->reason = text_copy(result_reason_name(result->reason));
    tried->exit_code = (uint64_t)result->exit_code;
    tried->wall_us = result->wall_us;
    tried->peak_kib = result->usage.peak_kib;
    if (result->error.kind != ERROR_NONE)
        set_error(tried, &result->error);
}

static void add_environment(const struct trying *trying, struct strings *out)
{
    strings_copy(out, &trying->variables);
    strings_copy(out, trying->env);
}

void trying_run(const struct trying *trying, const char *id, struct tried *out)
{
    autostrings struct strings env = STRINGS_NONE;
    struct result result = { 0 };
    struct error err;
    uint64_t step = 0;

    add_environment(trying, &env);

    struct client client = { .argv = (const char *const *)trying->argv->items,
                             .envp = (const char *const *)env.items,
                             .timeout_ms = trying->timeout_ms };

    if (start(id, NULL, &err) < 0) {
        set_failed(out, &err);
        return;
    }
    if (execute(id, &client, &step, &result, &err) < 0)
        set_failed(out, &err);
    else
        set_result(out, &result);
    if (halt(id, &err) < 0) {
        set_failed(out, &err);
        return;
    }
    add_tail(id, step, &out->output);
    look_at_changes(trying, id, out);
}

/* --- the score --- */

/* 0 also if the try left nothing to remove. */
static int clear(const struct trying *trying, const char *id, const struct tried *tried, struct error *err)
{
    autofiles struct files *session = NULL;
    int to, from, result;

    if (!tried->tampered.len)
        return 0;
    if (start(id, NULL, err) < 0)
        return -1;

    autoclose int keeper = connect_to(id, err);

    if (keeper < 0 || files_session_start(keeper, NULL, &to, &from, err) < 0)
        return -1;
    signal(SIGPIPE, SIG_IGN); /* not before the start: keepers and commands would have it too */
    session = files_open(to, from, err);
    result = session ? scorefiles_clear(trying->files, session, err) : -1;
    signal(SIGPIPE, SIG_DFL);
    return result < 0 ? -1 : halt(id, err);
}

static int write_spec(const char *id, const char *spec, struct error *err)
{
    autowhich struct which which = WHICH_NONE;
    const struct kept *kept = which_read_for(&which, id, err) < 0 ? NULL : which_sandbox(&which, id, err);
    autoclose int dir = kept ? kept_open(&which.all, kept, err) : -1;

    return dir < 0 ? -1 : keep_replace_spec(dir, id, spec, err);
}

/* The fork as the score is to see it, and started. */
static int lay_out(const struct trying *trying, const char *id, const struct tried *tried, struct error *err)
{
    autostrings struct strings readonly = STRINGS_NONE;

    if (!is_guarded("score-files"))
        return start(id, NULL, err);
    if (trying->files->len && clear(trying, id, tried, err) < 0)
        return -1;

    autofree char *spec = scorefiles_spec(trying->files, trying->spec, &readonly, err);

    if (!spec || write_spec(id, spec, err) < 0)
        return -1;
    return start(id, trying->files->len ? &readonly : NULL, err);
}

static bool is_given(const struct strings *env, const char *variable)
{
    size_t len = strcspn(variable, "=") + 1;

    for (size_t i = 0; i < env->len; i++)
        if (strncmp(env->items[i], variable, len) == 0)
            return true;
    return false;
}

static void set_score(struct tried *tried, double score, const char *by)
{
    free(tried->score);
    free(tried->score_by);
    tried->score = score_write(score);
    tried->score_by = text_copy(by);
}

static void take_score(const char *id, uint64_t step, const struct result *result, struct tried *out)
{
    autotext struct text said = TEXT_NONE;
    double score;

    add_tail(id, step, &out->score_output);
    out->score_exit = (uint64_t)result->exit_code;
    if (result->reason != RESULT_EXITED) { /* it had no say */
        autofree char *why =
            text_format("the score command did not end by itself: %s", result_reason_name(result->reason));

        free(out->error);
        out->error = steal_ptr(&why);
        return;
    }
    read_output(id, step, true, &said);
    if (said.len && score_read(last_lines(said.data, said.len, 1), &score))
        set_score(out, score, "number");
    else
        set_score(out, result->exit_code == 0, "exit");
}

static int run_score(const struct trying *trying, const char *id, struct tried *out, struct error *err)
{
    const char *argv[] = { "/bin/sh", "-c", score_script, trying->score, NULL };
    autostrings struct strings env = STRINGS_NONE;
    struct result result = { 0 };
    uint64_t step = 0;

    add_environment(trying, &env);
    for (size_t i = 0; is_guarded("score-place") && i < ARRAY_LEN(score_place); i++)
        if (!is_given(trying->env, score_place[i]))
            strings_add(&env, score_place[i]);

    struct client client = { .argv = argv,
                             .envp = (const char *const *)env.items,
                             .timeout_ms = trying->score_timeout_ms };

    if (execute(id, &client, &step, &result, err) < 0 || halt(id, err) < 0)
        return -1;
    take_score(id, step, &result, out);
    return 0;
}

void trying_score(const struct trying *trying, const char *id, struct tried *out)
{
    struct error err, ignored;

    if (lay_out(trying, id, out, &err) == 0 && run_score(trying, id, out, &err) == 0)
        return;
    set_failed(out, &err);
    (void)halt(id, &ignored);
}

void trying_score_by_exit(struct tried *tried)
{
    if (strcmp(tried->reason, "failed") != 0)
        set_score(tried, strcmp(tried->reason, "exited") == 0 && tried->exit_code == 0, "exit");
}
