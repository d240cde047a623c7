#include "inside/watch.h"

#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DIRS_MAX = 4096 };

#define MASK                                                                                                   \
    (IN_CREATE | IN_MODIFY | IN_ATTRIB | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF |            \
     IN_ONLYDIR | IN_EXCL_UNLINK)

struct watched {
    int number;
    char *path; /* below the top; "" is the top */
};

struct watch {
    struct frames *frames;
    uint32_t id;
    const char *top;
    bool recursive;
    int fd;
    struct watched dirs[DIRS_MAX];
    size_t len;
};

static struct watch watch;

static int tell(uint32_t change, uint32_t cookie, const char *path)
{
    struct files_event event = { change, cookie };

    return frames_send(watch.frames, SAY_EVENT, watch.id, &event, sizeof event, path, strlen(path));
}

static bool join(char *out, size_t size, const char *dir, const char *name)
{
    int len = snprintf(out, size, "%s%s%s", dir, *dir && *name ? "/" : "", name);

    return len >= 0 && (size_t)len < size;
}

/* A number that is there already belongs to a directory that was moved: it has this path now. */
static int add(const char *path)
{
    char whole[FILES_PATH_MAX + 1];

    if (!join(whole, sizeof whole, watch.top, path))
        return tell(CHANGE_LOST, 0, path);
    int number =
        watch.len < DIRS_MAX ? inotify_add_watch(watch.fd, whole, MASK | (*path ? IN_DONT_FOLLOW : 0)) : -1;

    if (number < 0)
        return !*path ? -1 : errno == ENOENT || errno == ENOTDIR ? 0 : tell(CHANGE_LOST, 0, path);
    for (size_t i = 0; i < watch.len; i++)
        if (watch.dirs[i].number == number) {
            free(watch.dirs[i].path);
            watch.dirs[i].path = strdup(path);
            return watch.dirs[i].path ? 0 : -1;
        }
    watch.dirs[watch.len] = (struct watched){ number, strdup(path) };
    return watch.dirs[watch.len++].path ? 0 : -1;
}

/* `fresh`: the directory was just made, and what is in it may have come before we watched it. */
static int add_below(const char *dir, bool fresh)
{
    char whole[FILES_PATH_MAX + 1], path[FILES_PATH_MAX + 1];
    autoclosedir DIR *entries = join(whole, sizeof whole, watch.top, dir) ? opendir(whole) : NULL;

    for (const struct dirent *entry; entries && (entry = readdir(entries));) {
        struct stat status;

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            !join(path, sizeof path, dir, entry->d_name) ||
            fstatat(dirfd(entries), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (fresh && tell(CHANGE_MADE | (S_ISDIR(status.st_mode) ? CHANGE_DIRECTORY : 0), 0, path) < 0)
            return -1;
        if (S_ISDIR(status.st_mode) && add(path) < 0)
            return -1;
    }
    return 0;
}

/* The list is its own queue: what is added while it is gone through is gone through too. */
static int add_tree(const char *path, bool fresh)
{
    size_t from = watch.len;

    if (add(path) < 0)
        return -1;
    for (size_t i = from; watch.recursive && i < watch.len; i++)
        if (add_below(watch.dirs[i].path, fresh) < 0)
            return -1;
    return 0;
}

static void forget(int number)
{
    for (size_t i = 0; i < watch.len; i++)
        if (watch.dirs[i].number == number) {
            free(watch.dirs[i].path);
            watch.dirs[i] = watch.dirs[--watch.len];
            return;
        }
}

/* A directory that went elsewhere is not ours any more, with all that is below it. */
static void forget_tree(const char *path)
{
    size_t len = strlen(path);

    for (size_t i = watch.len; i-- > 0;)
        if (strncmp(watch.dirs[i].path, path, len) == 0 &&
            (watch.dirs[i].path[len] == '/' || !watch.dirs[i].path[len]))
            (void)inotify_rm_watch(watch.fd, watch.dirs[i].number);
}

static uint32_t change_of(uint32_t mask)
{
    return (mask & (IN_CREATE | IN_MOVED_TO) ? CHANGE_MADE : 0U) | (mask & IN_MODIFY ? CHANGE_WRITTEN : 0U) |
           (mask & IN_ATTRIB ? CHANGE_ATTRIBUTES : 0U) |
           (mask & (IN_DELETE | IN_MOVED_FROM | IN_DELETE_SELF) ? CHANGE_GONE : 0U) |
           (mask & IN_ISDIR ? CHANGE_DIRECTORY : 0U);
}

static const struct watched *find(int number)
{
    for (size_t i = 0; i < watch.len; i++)
        if (watch.dirs[i].number == number)
            return &watch.dirs[i];
    return NULL;
}

static int take_event(const struct inotify_event *event)
{
    const struct watched *dir = find(event->wd);
    char path[FILES_PATH_MAX + 1];

    if (event->mask & IN_Q_OVERFLOW)
        return tell(CHANGE_LOST, 0, "");
    if (event->mask & IN_IGNORED) {
        forget(event->wd);
        return 0;
    }
    if (!dir || (event->mask & IN_DELETE_SELF && *dir->path)) /* its parent tells */
        return 0;
    if (!join(path, sizeof path, dir->path, event->len ? event->name : ""))
        return tell(CHANGE_LOST, 0, dir->path);
    if (change_of(event->mask) && tell(change_of(event->mask), event->cookie, path) < 0)
        return -1;
    if (!watch.recursive || !(event->mask & IN_ISDIR))
        return 0;
    if (event->mask & IN_MOVED_FROM)
        forget_tree(path);
    return event->mask & (IN_CREATE | IN_MOVED_TO) ? add_tree(path, true) : 0;
}

static int take_events(void)
{
    static _Alignas(struct inotify_event) char buffer[16 << 10];
    ssize_t got = read(watch.fd, buffer, sizeof buffer);

    for (char *at = buffer; got > 0 && at < buffer + got;) {
        const struct inotify_event *event = (const void *)at;

        if (take_event(event) < 0)
            return -1;
        at += sizeof *event + event->len;
    }
    return frames_flush(watch.frames);
}

static int follow(void)
{
    struct pollfd ready[] = { { .fd = watch.frames->in, .events = POLLIN },
                              { .fd = watch.fd, .events = POLLIN } };

    while (!frames_has_word(watch.frames)) {
        if (poll(ready, 2, -1) < 0 && errno != EINTR)
            return -1;
        if (ready[1].revents && take_events() < 0)
            return -1;
    }
    return 0;
}

int watch_run(struct frames *frames, uint32_t id, const char *path, bool recursive)
{
    autoclose int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

    watch = (struct watch){ .frames = frames, .id = id, .top = path, .recursive = recursive, .fd = fd };
    if (fd < 0)
        return -1;

    int result = add_tree("", false);

    /* Only now may the other end rely on it. */
    if (result == 0)
        result = tell(0, 0, "");
    if (result == 0)
        result = frames_flush(frames);
    if (result == 0)
        result = follow();
    for (size_t i = 0; i < watch.len; i++)
        free(watch.dirs[i].path);
    return result;
}
