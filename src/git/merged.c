#include "git/merged.h"

#include "base/own.h"
#include "base/text.h"
#include "changes/marks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

void merged_close(struct merged *dir)
{
    own_close(&dir->upper);
    own_close(&dir->base);
    *dir = MERGED_NONE;
}

static int open_directory(int dir, const char *name)
{
    return dir < 0 ? -1 : openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* What the upper says about one name. */
enum said { SAYS_NOTHING, SAYS_GONE, SAYS_DIRECTORY, SAYS_ALL };

static enum said ask_upper(const struct merged *dir, const char *name)
{
    struct stat status;

    if (dir->upper < 0 || fstatat(dir->upper, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return SAYS_NOTHING;
    if (mark_is_whiteout(dir->marks, dir->upper, name, &status))
        return SAYS_GONE;
    if (!S_ISDIR(status.st_mode) || mark_is_opaque(dir->marks, dir->upper, name))
        return SAYS_ALL;
    return SAYS_DIRECTORY;
}

static bool enter_one(const struct merged *dir, const char *name, struct merged *out)
{
    enum said said = ask_upper(dir, name);

    *out = MERGED_NONE;
    out->marks = dir->marks;
    if (said == SAYS_GONE)
        return false;
    if (said != SAYS_NOTHING)
        out->upper = open_directory(dir->upper, name);
    if (said == SAYS_NOTHING || said == SAYS_DIRECTORY)
        out->base = open_directory(dir->base, name);
    return out->upper >= 0 || out->base >= 0;
}

static void copy(const struct merged *dir, struct merged *out)
{
    *out = (struct merged){ open_directory(dir->upper, "."), open_directory(dir->base, "."), dir->marks };
}

bool merged_enter(const struct merged *dir, const char *path, struct merged *out)
{
    autofree char *words = text_copy(path);
    char *rest = NULL;

    copy(dir, out);
    for (char *name = strtok_r(words, "/", &rest); name; name = strtok_r(NULL, "/", &rest)) {
        struct merged next;

        if (strcmp(name, "..") == 0 || !enter_one(out, name, &next)) {
            merged_close(out);
            return false;
        }
        merged_close(out);
        *out = next;
    }
    return out->upper >= 0 || out->base >= 0;
}

/* Judged by its handle: a FIFO would let us wait, a device would act. */
static enum merged_found open_file(int dir, const char *name, int *out, struct stat *status)
{
    autoclose int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR ? MERGED_ABSENT : MERGED_ODD;
    if (fstat(fd, status) < 0 || !S_ISREG(status->st_mode))
        return MERGED_ODD;
    *out = steal_fd(&fd);
    return MERGED_FILE;
}

enum merged_found merged_read(const struct merged *dir, const char *name, size_t most, char **out, size_t *len)
{
    enum said said = ask_upper(dir, name);
    int from = said == SAYS_NOTHING ? dir->base : dir->upper;
    autoclose int fd = -1;
    struct stat status;

    *out = NULL;
    *len = 0;
    if (said == SAYS_GONE || from < 0)
        return MERGED_ABSENT;

    enum merged_found found = open_file(from, name, &fd, &status);

    if (found != MERGED_FILE)
        return found;
    if (status.st_size > (off_t)most)
        return MERGED_LARGE;

    size_t size = (size_t)status.st_size;
    autofree char *bytes = memory_zero(size + 1);

    for (ssize_t got; *len < size && (got = read(fd, bytes + *len, size - *len)) > 0;)
        *len += (size_t)got;
    *out = steal_ptr(&bytes);
    return MERGED_FILE;
}

/* --- names ---------------------------------------------------------------------------------- */

/* Names of the base that the upper says something about are told by the upper. */
static bool list_side(const struct merged *dir, int side, size_t most, struct strings *out)
{
    int again = open_directory(side, ".");
    autoclosedir DIR *names = again < 0 ? NULL : fdopendir(again);

    if (!names) {
        own_close(&again);
        return false;
    }
    for (struct dirent *entry; (entry = readdir(names));) {
        const char *name = entry->d_name;
        enum said said;

        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
            continue;
        said = ask_upper(dir, name);
        if (said == SAYS_GONE || (side == dir->base && said != SAYS_NOTHING))
            continue;
        if (out->len >= most)
            return false;
        strings_add(out, name);
    }
    return true;
}

bool merged_list(const struct merged *dir, size_t most, struct strings *out)
{
    if (dir->upper >= 0 && !list_side(dir, dir->upper, most, out))
        return false;
    if (dir->base >= 0 && !list_side(dir, dir->base, most, out))
        return false;
    strings_sort(out);
    return true;
}
