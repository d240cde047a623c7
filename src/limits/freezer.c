#include "limits/freezer.h"

#include "base/array.h"
#include "base/own.h"
#include "base/text.h"
#include "limits/cgroup.h"
#include "limits/place.h"
#include "sys/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

void freezer_free(struct freezer *freezer)
{
    free(freezer->dir);
    *freezer = FREEZER_NONE;
}

void freezer_borrow(const char *dir, struct freezer *out)
{
    *out = (struct freezer){ .dir = text_copy(dir) };
}

static bool file_says(const char *dir, const char *file, const char *words)
{
    autofree char *path = text_format("%s/%s", dir, file);
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    char content[256];
    ssize_t got = fd < 0 ? -1 : read(fd, content, sizeof content - 1);

    content[got < 0 ? 0 : got] = '\0';
    return strstr(content, words);
}

/* One in which a process could not be, as below a group that has threads, is none. */
static bool make_in(const char *parent, bool v1, struct freezer *out)
{
    uint64_t number;

    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        return false;

    autofree char *dir = text_format("%s/cove-f%016llx", parent, (unsigned long long)number);

    if (mkdir(dir, 0755) < 0)
        return false;
    if (!file_says(dir, v1 ? "freezer.state" : "cgroup.type", v1 ? "THAWED" : "domain\n")) {
        (void)rmdir(dir);
        return false;
    }
    *out = (struct freezer){ steal_ptr(&dir), v1, true };
    return true;
}

void freezer_make(struct freezer *out)
{
    *out = FREEZER_NONE;
    for (int v1 = 0; v1 < 2 && !out->dir; v1++) {
        autofree char *parent = cgroup_place_freezer(v1);

        if (parent)
            (void)make_in(parent, v1, out);
    }
}

int freezer_open(const struct freezer *freezer)
{
    return freezer->dir && !freezer->v1 ? open(freezer->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
}

void freezer_joins(const struct freezer *freezer, struct strings *out)
{
    if (freezer->dir && freezer->v1)
        strings_take(out, text_format("%s/tasks", freezer->dir));
}

/* What is written where, and what the kernel says when the last one has stopped. */
static const struct {
    const char *file, *order[2], *told_by, *told[2];
} ways[] = {
    { "cgroup.freeze", { "0", "1" }, "cgroup.events", { "frozen 0", "frozen 1" } },
    { "freezer.state", { "THAWED", "FROZEN" }, "freezer.state", { "THAWED", "FROZEN" } },
};

bool freezer_set(const struct freezer *freezer, bool frozen)
{
    enum { TRIES = 1000 };
    bool v1 = freezer->v1;

    if (!freezer->dir)
        return false;

    autofree char *path = text_format("%s/%s", freezer->dir, ways[v1].file);

    if (sys_write_file(AT_FDCWD, path, ways[v1].order[frozen]) < 0)
        return false;
    for (int i = 0; i < TRIES; i++) {
        if (file_says(freezer->dir, ways[v1].told_by, ways[v1].told[frozen]))
            return true;
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    }
    if (frozen) /* half of it, PID 1 perhaps among them, helps nobody */
        (void)sys_write_file(AT_FDCWD, path, ways[v1].order[false]);
    return !frozen;
}

void freezer_remove(const struct freezer *freezer, unsigned patience_ms)
{
    if (freezer->dir && freezer->own)
        (void)cgroup_remove_dir(freezer->dir, patience_ms);
}

/* A PID 1 that is frozen, and would be dead if it were not, has no keeper any more. */
static bool is_to_die(long pid)
{
    autofree char *path = text_format("/proc/%ld/status", pid);
    autofile FILE *status = fopen(path, "re");
    unsigned long long pending = 0;
    char line[256];

    while (status && fgets(line, sizeof line, status))
        if (text_starts(line, "SigPnd:") || text_starts(line, "ShdPnd:"))
            pending |= strtoull(strchr(line, ':') + 1, NULL, 16);
    return pending >> (SIGKILL - 1) & 1;
}

static void let_die(const char *dir)
{
    autofree char *path = text_format("%s/cgroup.procs", dir);
    autofile FILE *all = fopen(path, "re");
    struct freezer freezer = { (char *)(uintptr_t)dir, true, true };
    enum { DYING_MS = 2000 };
    char line[32];

    while (all && fgets(line, sizeof line, all))
        if (is_to_die(strtol(line, NULL, 10))) {
            (void)freezer_set(&freezer, false);
            freezer_remove(&freezer, DYING_MS);
            return;
        }
}

void freezer_sweep(const struct freezer *freezer)
{
    if (!freezer->dir || !freezer->own)
        return;

    autofree char *parent = text_format("%.*s", (int)(strrchr(freezer->dir, '/') - freezer->dir), freezer->dir);
    DIR *list = freezer->v1 ? opendir(parent) : NULL;
    const struct dirent *entry;

    while (list && (entry = readdir(list))) {
        autofree char *dir = text_format("%s/%s", parent, entry->d_name);

        if (text_starts(entry->d_name, "cove-f"))
            let_die(dir);
    }
    if (list)
        closedir(list);
    cgroup_sweep_dir(parent);
}
