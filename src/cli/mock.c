#include "cli/mock.h"

#include "base/error.h"
#include "base/map.h"
#include "base/own.h"
#include "base/text.h"
#include "cli/say.h"
#include "gateway/mockfile.h"
#include "gateway/tape.h"
#include "keeper/reel.h"
#include "spec/node.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>

enum { RULES_MAX = 1024 }; /* as many as a policy file may have */

const struct option_row options_of_mock[] = {
    { "output", 'o', "DIR", "Write to the new directory DIR, not to mocks", OPTION_STRING,
      offsetof(struct run_options, output) },
    { NULL },
};

const char *const mock_verbs[] = { "from-record", NULL };

/* What is written, and what of the record was not used. */
struct writing {
    int dir, bodies; /* bodies: -1 until there is one in a file */
    struct text policy;
    size_t rules, repeated;
};

static int write_file(int dir, const char *name, const struct text *bytes, struct error *err)
{
    autoclose int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0)
        return error_sys(err, "make %s", name);
    for (size_t at = 0; at < bytes->len;) {
        ssize_t put = write(fd, bytes->data + at, bytes->len - at);

        if (put < 0 && errno != EINTR)
            return error_sys(err, "write %s", name);
        at += put > 0 ? (size_t)put : 0;
    }
    return 0;
}

static int open_bodies(struct writing *writing, struct error *err)
{
    if (writing->bodies >= 0)
        return 0;
    if (mkdirat(writing->dir, "bodies", 0700) < 0)
        return error_sys(err, "make the directory bodies");
    writing->bodies = openat(writing->dir, "bodies", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return writing->bodies < 0 ? error_sys(err, "open the directory bodies") : 0;
}

static int write_rule(struct writing *writing, const struct take *take, struct error *err)
{
    autofree char *name = NULL, *path = NULL;

    writing->rules++;
    if (!mockfile_is_inline(take)) {
        name = text_format("%04zu%s", writing->rules, mockfile_ending(take));
        path = text_format("bodies/%s", name);
        if (open_bodies(writing, err) < 0 || write_file(writing->bodies, name, &take->response.body, err) < 0)
            return -1;
    }
    mockfile_add(take, path, &writing->policy);
    return 0;
}

static void count_usable(const struct tape *tape, struct map *out)
{
    for (size_t i = 0; i < tape->len; i++) {
        autofree char *key = mockfile_key(&tape->items[i].take);

        if (!mockfile_refuses(&tape->items[i].take))
            (void)map_add(out, key, 1);
    }
}

/* Of those that would be the same rule the last one counts: what a program was told in the end. */
static int write_take(struct writing *writing, const struct take *take, const struct map *all, struct map *seen,
                      struct error *err)
{
    autofree char *key = mockfile_key(take);

    if (map_add(seen, key, 1) == map_get(all, key))
        return write_rule(writing, take, err);
    writing->repeated++;
    return 0;
}

static int write_rules(struct writing *writing, const struct tape *tape, struct error *err)
{
    automap struct map all = MAP_NONE, seen = MAP_NONE;

    count_usable(tape, &all);
    mockfile_begin(&writing->policy);
    for (size_t i = 0; i < tape->len; i++) {
        const struct take *take = &tape->items[i].take;
        const char *refused = mockfile_refuses(take);

        if (!refused && writing->rules == RULES_MAX)
            refused = "there are more than a policy file may have";
        if (refused)
            say_warning("%s %s%.100s is left out: %s", take->method, take->host, take->path, refused);
        else if (write_take(writing, take, &all, &seen, err) < 0)
            return -1;
    }
    return writing->rules ? write_file(writing->dir, "policy.yaml", &writing->policy, err)
                          : error_set(err, ERROR_INVALID, "no exchange in it can be a mock");
}

static int open_new(const char *path, struct error *err)
{
    if (mkdir(path, 0700) < 0)
        return error_sys(err, "make the new directory %.200s", path);

    int fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    return fd < 0 ? error_sys(err, "open %.200s", path) : fd;
}

static int from_record(const char *file, const char *to, struct error *err)
{
    autotape struct tape tape = TAPE_NONE;
    autotext struct text bytes = TEXT_NONE;
    struct writing writing = { .bodies = -1 };

    if (reel_load(file, &bytes, &tape, err) < 0)
        return -1;
    autoclose int dir = open_new(to, err);

    if (dir < 0)
        return -1;
    writing.dir = dir;

    int result = write_rules(&writing, &tape, err);

    own_close(&writing.bodies);
    text_free(&writing.policy);
    if (result < 0)
        return error_while(err, "%.200s", file);
    if (tape.broken)
        say_warning("lines that are no exchange are left out: %zu, the first is line %zu", tape.broken,
                    tape.first_bad);
    if (writing.repeated)
        say_warning("%zu exchange%s left out: a later one has the same method, host, port and path",
                    writing.repeated, writing.repeated == 1 ? " is" : "s are");
    printf("%s/policy.yaml\n", to);
    return 0;
}

/* A verb that is none, or a file that is not there: the verb need not be said. */
static int refuse_word(const char *word, struct error *err)
{
    autotext struct text shown = TEXT_NONE;

    node_show_text(word, &shown);
    error_set(err, ERROR_INVALID, "%s is neither a verb of `cove mock` nor a file that is there",
              text_string(&shown));
    return error_hint(err, "cove mock from-record FILE");
}

int cli_mock(struct options *options, struct error *err)
{
    const struct strings *words = &options->words;

    if (words->len > 1 || (words->len && access(words->items[0], F_OK) < 0 && errno == ENOENT))
        return refuse_word(words->items[0], err);
    if (!words->len)
        return error_set(err, ERROR_INVALID, "say which record: cove mock from-record FILE");
    return from_record(words->items[0], options->run.output ? options->run.output : "mocks", err);
}
