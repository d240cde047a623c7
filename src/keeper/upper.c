#include "keeper/upper.h"

#include "base/array.h"
#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "box/idmap.h"
#include "box/plan.h"
#include "init/wire.h"
#include "keeper/record.h"
#include "store/merge.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static bool needs_helpers(const struct ids *ids)
{
    return ids->helpers && ids->rows == 2;
}

int upper_act_here(const struct ids *ids, int (*act)(void *argument), void *argument, struct error *err)
{
    if (needs_helpers(ids))
        return idmap_run(ids, act, argument, err);
    if (!ids->shifted)
        (void)sys_own_user_namespace(); /* without, what its owner has closed cannot be opened */
    return act(argument);
}

int upper_act(const struct ids *ids, int (*act)(void *argument), void *argument, struct error *err)
{
    if (needs_helpers(ids))
        return idmap_run(ids, act, argument, err);

    pid_t child = fork();

    if (child < 0)
        return error_sys(err, "fork");
    if (child == 0)
        _exit(upper_act_here(ids, act, argument, err) < 0 ? 1 : 0);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        continue;
    return 0;
}

/* --- merging --- */

struct merging {
    struct stack_place place;
    int number, answer;
    enum merge_marks marks;
};

static int merge(void *argument)
{
    const struct merging *merging = argument;
    struct error error = { 0 };
    autoclose int fd = merge_upper(&merging->place, merging->number, merging->marks, &error);

    if (fd >= 0)
        error.kind = ERROR_NONE;
    return wire_put(merging->answer, &error, sizeof error, &fd, fd >= 0 ? 1 : 0);
}

static int merge_apart(struct merging *merging, const struct ids *ids, struct error *err)
{
    int pair[2], fds[PROTOCOL_FDS_MAX];
    struct error said;
    size_t count = 0;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return error_sys(err, "make sockets");

    autoclose int mine = pair[0], its = pair[1];

    merging->answer = its;
    if (upper_act(ids, merge, merging, err) < 0)
        return -1;
    close(steal_fd(&its));
    if (wire_take(mine, &said, sizeof said, fds, &count, err) != WIRE_MESSAGE)
        return error_set(err, ERROR_SYSTEM, "merging layers died");
    if (count == 1)
        return fds[0];
    *err = said;
    return -1;
}

/* --- what was merged --- */

/* By this process; it goes with it. */
static struct {
    struct seen {
        int dir; /* the sandbox's */
        char *name;
        struct ids ids;
    } * items;
    size_t len, cap;
} seen;

static int remove_seen(void *argument)
{
    const struct seen *one = argument;
    struct error ignored;

    return store_remove_tree(one->dir, one->name, &ignored);
}

static void note_seen(int dir, int merged, const struct ids *ids)
{
    char path[PATH_MAX];
    ssize_t len = readlink(sys_fd_path(merged).text, path, sizeof path - 1);
    const char *name;

    if (len < 0)
        return;
    path[len] = '\0';
    name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    if (text_starts(name, STACK_SEEN))
        /* Opened anew: a copy of `dir` would keep the lock that its owner may have on it. */
        *array_add(&seen) =
            (struct seen){ openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), text_copy(name), *ids };
}

void upper_tidy(void)
{
    struct error ignored;

    for (size_t i = 0; i < seen.len; i++) {
        (void)upper_act(&seen.items[i].ids, remove_seen, &seen.items[i], &ignored);
        close(seen.items[i].dir);
        free(seen.items[i].name);
    }
    free(seen.items);
    seen.items = NULL;
    seen.len = seen.cap = 0;
}

static int open_merged(int dir, const struct record *record, uint64_t number, struct error *err)
{
    autoclose int parent = openat(dir, "..", O_PATH | O_DIRECTORY | O_CLOEXEC),
                  layers = layers_beside(parent, err);
    struct merging merging = { .place = { .layers = layers,
                                          .sandbox = dir,
                                          .id = record->id,
                                          .ids = record->shifted ? (uint32_t)record->base : 0 },
                               .number = (int)number,
                               .marks = record->shifted ? MERGE_TRUSTED : MERGE_USER };
    struct ids ids;

    if (layers < 0)
        return -1;
    record_get_ids(record, &ids);
    ids.shifted = record->shifted;
    if (!stack_is_whole(dir) && store_hold(dir, 0) == 0 && stack_repair(&merging.place, err) < 0)
        return -1;

    int fd = merge_apart(&merging, &ids, err);

    if (fd >= 0)
        note_seen(dir, fd, &ids);
    return fd;
}

static int open_once(int dir, const struct record *record, uint64_t number, bool *linked, struct error *err)
{
    autofree char *name = text_format("u%llu", (unsigned long long)number);
    char top[ID_LENGTH + 1];

    if (stack_top(dir, top, err) < 0)
        return -1;
    if (*top || !stack_is_whole(dir)) {
        if (linked)
            *linked = true;
        return open_merged(dir, record, number, err);
    }

    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    return fd < 0 ? error_sys(err, "open what the sandbox wrote") : fd;
}

/* A keeper may be exchanging the layers just now, which takes some milliseconds. */
int upper_open(int dir, const struct record *record, uint64_t number, bool *linked, struct error *err)
{
    enum { TRIES = 20, BEAT_MS = 10 };
    int fd = open_once(dir, record, number, linked, err);

    for (int i = 0; fd < 0 && err->sys_errno == ENOENT && i < TRIES; i++) {
        poll(NULL, 0, BEAT_MS);
        fd = open_once(dir, record, number, linked, err);
    }
    return fd;
}
