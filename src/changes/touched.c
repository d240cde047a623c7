#include "changes/scan.h"

#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

static void drop_doubles(struct entries *entries)
{
    size_t kept = 0;

    if (entries->len)
        qsort(entries->items, entries->len, sizeof *entries->items, by_name);
    for (size_t i = 0; i < entries->len; i++)
        if (kept && strcmp(entries->items[kept - 1].name, entries->items[i].name) == 0)
            free(entries->items[i].name);
        else
            entries->items[kept++] = entries->items[i];
    entries->len = kept;
}

/* What one layer says about a directory.  1: all of it may be another one. */
static int ask(const struct scan *scan, int layer, const char *path, size_t most, struct entries *out)
{
    autoclose int dir = scan_open(layer, path, O_PATH | O_DIRECTORY);
    struct entries found = { 0 };

    if (dir < 0)
        return scan_is_gone(errno) ? 0 : 1;
    if (*path && mark_is_opaque(scan->source->marks, dir, "."))
        return 1;
    if (scan_list(dir, most, NULL, &found) < 0) {
        int error = errno;

        entries_free(&found);
        errno = error;
        return error == E2BIG ? -1 : 1;
    }
    for (size_t i = 0; i < found.len; i++)
        *array_add(out) = found.items[i];
    free(found.items);
    return 0;
}

static bool is_one_file(const int dirs[2], const char *name)
{
    struct stat one, other;

    return fstatat(dirs[0], name, &one, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(one.st_mode) &&
           fstatat(dirs[1], name, &other, AT_SYMLINK_NOFOLLOW) == 0 && one.st_ino == other.st_ino &&
           one.st_dev == other.st_dev;
}

/* Copies of what is in use share most of their files: those are not read. */
static void drop_shared(const struct changes_source *source, const char *path, struct entries *entries)
{
    autoclose int one = scan_open(source->touched[0], path, O_PATH | O_DIRECTORY),
                  other = scan_open(source->touched[1], path, O_PATH | O_DIRECTORY);
    size_t kept = 0;

    if (one < 0 || other < 0)
        return;
    for (size_t i = 0; i < entries->len; i++)
        if (is_one_file((const int[]){ one, other }, entries->items[i].name))
            free(entries->items[i].name);
        else
            entries->items[kept++] = entries->items[i];
    entries->len = kept;
}

int touched_list(const struct scan *scan, struct job *job, int upper, size_t most, struct entries *out)
{
    const struct changes_source *source = scan->source;

    for (size_t i = 0; job->shown && !job->opaque && i < source->touched_count; i++) {
        int said = ask(scan, source->touched[i], job->path, most, out);

        if (said < 0)
            return -1;
        job->opaque = said > 0;
    }
    if (job->shown && !job->opaque) {
        drop_doubles(out);
        if (source->beside && source->touched_count == 2)
            drop_shared(source, job->path, out);
        return 0;
    }
    entries_free(out);
    return scan_list(upper, most, NULL, out);
}
