#include "keeper/confined.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "box/host.h"
#include "box/place.h"
#include "box/plan.h"
#include "box/workspace.h"
#include "keeper/room.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Its home: a directory that is in no image, so that nothing of the owner's is read from it. */
#define HOME "/mnt/home"

static int add_trees(const struct confined *what, struct trees *out, struct error *err)
{
    for (size_t i = 0; i < what->tree_count; i++) {
        const struct confined_tree *tree = &what->trees[i];
        autoplace struct place place = PLACE_NONE;

        if (place_open(tree->at, *tree->source ? tree->source : ".", &place) < 0)
            return error_sys(err, "open the directory for %s", tree->target);
        trees_add(out, &place, tree->target, tree->mode, TREE_WHY_GRANT);
    }
    return 0;
}

/* Nothing of the owner's environment or home has a say, nor has any policy: what is given is less
 * than the narrowest one leaves. */
static int make_plan(const struct host *host, const struct confined *what, struct plan *plan, struct error *err)
{
    char *nothing[] = { NULL }, home[] = HOME;
    struct host stranger = *host;
    struct trees trees = TREES_NONE;
    autospec struct spec spec = { .image = text_copy("host"),
                                  .directory = text_copy("/"),
                                  .hostname = text_copy("cove"),
                                  .user = what->user ? text_copy(what->user) : NULL,
                                  .profile = what->profile,
                                  .terminal = TERMINAL_NO,
                                  .remove = true };
    autofree char *cwd = text_copy(what->cwd ? what->cwd : "/");
    struct workspace workspace = { .root = cwd, .cwd = cwd };

    stranger.environ = nothing;
    stranger.home = home;
    for (size_t i = 0; what->argv[i]; i++)
        strings_add(&spec.command, what->argv[i]);

    int result = add_trees(what, &trees, err);

    if (result == 0)
        result = plan_build(&spec, &stranger, &workspace, &trees, plan, err);
    trees_free(&trees);
    strings_free(&plan->env);
    for (size_t i = 0; what->env && what->env[i]; i++)
        strings_add(&plan->env, what->env[i]);
    return result;
}

int confined_run(const struct host *host, const struct confined *what, struct result *result, struct error *err)
{
    struct plan plan = { 0 };
    struct room room = { .timeout_ms = what->timeout_ms,
                         .output_most = what->output_most,
                         .in = what->in,
                         .out = what->out,
                         .err = what->err,
                         .program = what->program };

    *result = (struct result){ .exit_code = EXIT_OUR_ERROR };

    int done = make_plan(host, what, &plan, err);

    if (done == 0)
        done = room_run(host, &plan, &room, result, err);
    plan_free(&plan);
    return done;
}

/* --- a program that has to succeed ---------------------------------------------------------- */

enum { COMPLAINT_MAX = 4096, COMPLAINT_SHOWN = 300 };

/* The last two lines that are not empty, as one. */
static char *last_lines(char *text)
{
    size_t len = strlen(text);

    while (len > 0 && text[len - 1] == '\n')
        text[--len] = '\0';

    char *newline = strrchr(text, '\n');

    if (!newline)
        return text;
    *newline = ' ';
    newline = strrchr(text, '\n');
    return newline ? newline + 1 : text;
}

static void add_complaint(int fd, struct error *err)
{
    char bytes[COMPLAINT_MAX + 1];
    autotext struct text shown = TEXT_NONE;
    struct stat status;

    if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
        return;

    off_t from = status.st_size > COMPLAINT_MAX ? status.st_size - COMPLAINT_MAX : 0;
    ssize_t len = pread(fd, bytes, COMPLAINT_MAX, from);

    if (len <= 0)
        return;
    bytes[len] = '\0';
    text_add_inert(&shown, last_lines(bytes));
    error_hint(err, "it said: %.*s", COMPLAINT_SHOWN, text_string(&shown));
}

int confined_succeed(const struct host *host, const struct confined *what, const char *doing, struct error *err)
{
    struct result result;

    if (confined_run(host, what, &result, err) < 0)
        return error_while(err, "%s, contained", doing);
    if (result.reason == RESULT_EXITED && result.exit_code == 0)
        return 0;
    switch (result.reason) {
    case RESULT_EXITED:
        error_set(err, ERROR_REFUSED, "%s failed with exit code %d", doing, result.exit_code);
        break;
    case RESULT_TIMED_OUT:
        return error_set(err, ERROR_REFUSED, "%s took longer than %llu seconds", doing,
                         (unsigned long long)(what->timeout_ms / 1000));
    case RESULT_OUTPUT_LOST:
        return error_set(err, ERROR_REFUSED, "%s gave more than %llu MiB, or it could not be written", doing,
                         (unsigned long long)(what->output_most >> 20));
    case RESULT_NOT_STARTED:
        *err = result.error;
        return error_while(err, "%s, contained", doing);
    case RESULT_SIGNALED:
    case RESULT_INTERRUPTED:
    case RESULT_LIMIT:
    case RESULT_FAILED:
        error_set(err, ERROR_SYSTEM, "%s was ended by signal %d", doing, result.signal);
        break;
    }
    add_complaint(what->err, err);
    return -1;
}
