#include "keeper/live_watch.h"

#include "base/array.h"
#include "base/own.h"
#include "base/text.h"
#include "sys/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

/* The owner's editor lives from the same watches. */
enum { DIRS_MAX = 8192 };

enum {
    EVENTS = IN_CREATE | IN_DELETE | IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB | IN_MOVED_FROM | IN_MOVED_TO,
};

static int open_dir(const struct watch *watch, const char *path)
{
    return sys_open_beneath(watch->upper, path, O_RDONLY | O_DIRECTORY);
}

/* Where the directory with this number is, or belongs. */
static size_t place_of(const struct watch *watch, int number)
{
    size_t low = 0, high = watch->len;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (watch->items[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct watch_dir *find(const struct watch *watch, int number)
{
    size_t place = place_of(watch, number);

    return place < watch->len && watch->items[place].number == number ? &watch->items[place] : NULL;
}

static void forget(struct watch *watch, struct watch_dir *dir)
{
    size_t place = (size_t)(dir - watch->items);

    free(dir->path);
    memmove(dir, dir + 1, (--watch->len - place) * sizeof *dir);
}

/* A directory that was moved keeps its number and gets a new path. */
static void note(struct watch *watch, int number, const char *path)
{
    struct watch_dir *known = find(watch, number);
    size_t place = place_of(watch, number);

    if (known) {
        free(known->path);
        known->path = text_copy(path);
        return;
    }
    (void)array_add(watch);
    memmove(&watch->items[place + 1], &watch->items[place], (watch->len - 1 - place) * sizeof *watch->items);
    watch->items[place] = (struct watch_dir){ number, text_copy(path) };
}

static bool watch_dir(struct watch *watch, int dir, const char *path)
{
    int number = watch->len < DIRS_MAX && watch->fd >= 0
                     ? inotify_add_watch(watch->fd, sys_fd_path(dir).text, EVENTS | IN_ONLYDIR)
                     : -1;

    if (number < 0) {
        watch->deaf = true;
        return false;
    }
    note(watch, number, path);
    return true;
}

static void push_below(struct strings *left, DIR *names, const char *path)
{
    for (const struct dirent *entry; left->len < DIRS_MAX && (entry = sys_next_entry(names));)
        if (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN)
            strings_take(left, *path ? text_format("%s/%s", path, entry->d_name) : text_copy(entry->d_name));
}

void watch_tree(struct watch *watch, const char *path)
{
    autostrings struct strings left = STRINGS_NONE;

    strings_add(&left, path);
    while (left.len && left.len < DIRS_MAX) {
        autofree char *next = left.items[--left.len];

        left.items[left.len] = NULL;

        int dir = strlen(next) < PATH_MAX ? open_dir(watch, next) : -1;
        autoclosedir DIR *names = dir < 0 ? NULL : fdopendir(dir);

        if (!names)
            continue;
        if (!watch_dir(watch, dir, next))
            return;
        push_below(&left, names, next);
    }
    watch->deaf = watch->deaf || left.len;
}

void watch_add(struct watch *watch, const char *path)
{
    autoclose int dir = open_dir(watch, path);

    if (dir >= 0)
        (void)watch_dir(watch, dir, path);
}

void watch_open(struct watch *watch, int upper)
{
    *watch = WATCH_NONE;
    watch->upper = upper;
    watch->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    watch->deaf = watch->fd < 0;
    watch_tree(watch, "");
}

void watch_close(struct watch *watch)
{
    for (size_t i = 0; i < watch->len; i++)
        free(watch->items[i].path);
    free(watch->items);
    own_close(&watch->fd);
    *watch = WATCH_NONE;
}

/* A directory that is not at its place any more is watched again when it is found elsewhere. */
static void leave(struct watch *watch, const char *path)
{
    size_t len = strlen(path);

    for (size_t i = watch->len; i-- > 0;) {
        struct watch_dir *dir = &watch->items[i];

        if (strncmp(dir->path, path, len) != 0 || (dir->path[len] && dir->path[len] != '/'))
            continue;
        (void)inotify_rm_watch(watch->fd, dir->number);
        forget(watch, dir);
    }
}

static void take(struct watch *watch, const struct inotify_event *event, watch_told *told, void *owner)
{
    struct watch_dir *dir = find(watch, event->wd);

    if (event->mask & IN_Q_OVERFLOW)
        watch->lost = true;
    if (dir && (event->mask & IN_IGNORED))
        forget(watch, dir);
    if (!dir || !event->len)
        return;

    autofree char *path = *dir->path ? text_format("%s/%s", dir->path, event->name) : text_copy(event->name);
    bool directory = event->mask & IN_ISDIR;

    watch->hears = watch->hears || event->mask & (IN_MODIFY | IN_CLOSE_WRITE);
    if (event->mask & (IN_DELETE | IN_MOVED_FROM)) {
        if (directory)
            leave(watch, path);
        told(owner, path, WATCH_REMOVED);
    } else if (directory && (event->mask & (IN_CREATE | IN_MOVED_TO))) {
        told(owner, path, WATCH_DIRECTORY);
    } else {
        told(owner, path, event->mask & (IN_CLOSE_WRITE | IN_MOVED_TO) ? WATCH_CLOSED : WATCH_CHANGED);
    }
}

void watch_read(struct watch *watch, watch_told *told, void *owner)
{
    enum { ROUNDS = 16 };
    _Alignas(struct inotify_event) char buffer[16384];

    for (int round = 0; round < ROUNDS; round++) {
        ssize_t got = read(watch->fd, buffer, sizeof buffer);

        if (got <= 0)
            return;
        for (char *at = buffer; at < buffer + got;) {
            const struct inotify_event *event = (const struct inotify_event *)(void *)at;

            take(watch, event, told, owner);
            at += sizeof *event + event->len;
        }
    }
}
