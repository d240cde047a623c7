#include "cli/cp.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "cli/say.h"
#include "cli/staying.h"
#include "cli/view.h"
#include "cli/which.h"
#include "keeper/files.h"
#include "keeper/files_cp.h"
#include "keeper/files_session.h"
#include "keeper/files_tree.h"
#include "keeper/held.h"
#include "spec/node.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PATIENCE_US = 1000000, BEAT_US = 100000 };

const struct option_row options_of_cp[] = {
    { "follow-link", 'L', NULL, "If SRC itself is a link, copy what it leads to", OPTION_BOOL,
      offsetof(struct run_options, follow_link) },
    { "archive", 'a', NULL, "Does nothing: modes and times are always kept, owners never", OPTION_BOOL,
      offsetof(struct run_options, archive) },
    { "quiet", 'q', NULL, "Say nothing unless something goes wrong", OPTION_BOOL,
      offsetof(struct run_options, quiet) },
    { "json", 0, NULL, "Print what was copied as JSON", OPTION_BOOL, offsetof(struct run_options, json) },
    { NULL },
};

/* One of the two words.  `id` is NULL for a path of the host. */
struct side {
    char *id;
    const char *path;
};

#define autoside __attribute__((cleanup(side_free)))

static void side_free(struct side *side)
{
    free(side->id);
}

/* ID:PATH.  A path of the host with a colon is written with a slash before it, as ./a:b. */
static struct side take_side(const char *word)
{
    const char *colon = strchr(word, ':');
    struct side side = { .path = word };

    if (!colon || colon == word || memchr(word, '/', (size_t)(colon - word)) || word[0] == '.')
        return side;
    side.id = text_format("%.*s", (int)(colon - word), word);
    side.path = colon[1] ? colon + 1 : ".";
    return side;
}

struct progress {
    uint64_t next;
    bool shown, watched;
};

static bool go_on(void *owner, uint64_t files, uint64_t bytes)
{
    struct progress *progress = owner;
    uint64_t now = clock_us();

    if (progress->watched && now >= progress->next) {
        autotext struct text size = TEXT_NONE;

        view_space(bytes, &size);
        fprintf(stderr, "\rcopying: %" PRIu64 " files, %s\033[K", files, text_string(&size));
        fflush(stderr);
        progress->next = now + BEAT_US;
        progress->shown = true;
    }
    return !held_waits();
}

static void print_json(const struct files_copy *copy)
{
    autonode struct node root = { .kind = NODE_MAP };
    autofree char *files = text_format("%" PRIu64, copy->files), *bytes = text_format("%" PRIu64, copy->bytes);
    autotext struct text out = TEXT_NONE;
    struct node *skipped;

    node_add(&root, "files", NODE_NUMBER, files);
    node_add(&root, "bytes", NODE_NUMBER, bytes);
    skipped = node_add(&root, "skipped", NODE_LIST, NULL);
    for (size_t i = 0; i < copy->notes.len; i++)
        node_add_bytes(node_add(skipped, NULL, NODE_MAP, NULL), "what", copy->notes.items[i]);
    node_write_json(&root, &out);
    printf("%s\n", text_string(&out));
}

static void tell(const struct files_copy *copy, const struct run_options *options, bool failed)
{
    autotext struct text size = TEXT_NONE;

    if (options->json && !failed) {
        print_json(copy);
        return;
    }
    for (size_t i = 0; i < copy->notes.len; i++)
        say_warning("%s", copy->notes.items[i]);
    if (failed || options->quiet)
        return;
    view_space(copy->bytes, &size);
    fprintf(stderr, "cove: copied %" PRIu64 " file%s, %s\n", copy->files, copy->files == 1 ? "" : "s",
            text_string(&size));
}

/* 1 if something was left out. */
static int copy_between(struct files *files, const struct side *from, const struct side *to,
                        const struct run_options *options, struct error *err)
{
    struct progress progress = { .next = clock_us() + PATIENCE_US,
                                 .watched = isatty(STDERR_FILENO) && !options->quiet && !options->json };
    struct files_copy copy = { .go_on = go_on, .owner = &progress };
    int result =
        from->id ? files_cp_out(files, from->path, to->path, options->follow_link, STDOUT_FILENO, &copy, err)
                 : files_cp_in(files, from->path, to->path, options->follow_link, STDIN_FILENO, &copy, err);

    if (progress.shown)
        fputs("\r\033[K", stderr);
    tell(&copy, options, result < 0);
    if (result == 0 && copy.lost)
        result = 1;
    files_copy_free(&copy);
    return result;
}

static int check(const struct options *options, const struct side *from, const struct side *to,
                 struct error *err)
{
    if (options->words.len != 2 || !from->id == !to->id) {
        error_set(err, ERROR_INVALID, "`cove cp` needs two paths, one of them of a sandbox");
        return error_hint(err, "cove cp ID:PATH PATH, or cove cp PATH ID:PATH");
    }
    if (from->id && strcmp(to->path, "-") == 0 && (isatty(STDOUT_FILENO) || options->run.json))
        return error_set(err, ERROR_INVALID,
                         "an archive goes to standard output, which must be a file or a pipe");
    return 0;
}

/* What comes in changes the sandbox, so it is a step like a command. */
static struct files *open_files(const struct side *from, const struct side *to_side, int *keeper,
                                struct error *err)
{
    const char *const step[] = { "cp", from->path, to_side->path, NULL };
    const char *id = from->id ? from->id : to_side->id;
    autowhich struct which which = WHICH_NONE;
    const struct kept *kept = which_read_for(&which, id, err) < 0 ? NULL : which_sandbox(&which, id, err);
    int to, out;

    *keeper = kept ? staying_connect(&which, kept, err) : -1;
    if (*keeper < 0 || files_session_start(*keeper, to_side->id ? step : NULL, &to, &out, err) < 0)
        return NULL;
    return files_open(to, out, err);
}

int cli_cp(struct options *options, struct error *err)
{
    autoside struct side from = take_side(options->words.len ? options->words.items[0] : ""),
                         to = take_side(options->words.len > 1 ? options->words.items[1] : "");
    autoclose int keeper = -1;
    sigset_t old;

    if (check(options, &from, &to, err) < 0)
        return -1;
    signal(SIGPIPE, SIG_IGN);
    held_begin(&old); /* what was begun is removed before we end */

    struct files *files = open_files(&from, &to, &keeper, err);
    int result = files ? copy_between(files, &from, &to, &options->run, err) : -1;

    if (files)
        files_close(files);
    if (files && to.id)
        files_session_end(keeper);
    sigprocmask(SIG_SETMASK, &old, NULL);
    return result;
}
