#include "box/closed.h"

#include "base/array.h"
#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "sys/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

enum { DEPTH_MAX = 64 };

static bool is_closed(const struct stat *status)
{
    if (S_ISDIR(status->st_mode))
        return (status->st_mode & (S_IROTH | S_IXOTH)) != (S_IROTH | S_IXOTH);
    return S_ISREG(status->st_mode) && !(status->st_mode & S_IROTH);
}

static int walk(int fd, const char *above, unsigned depth, struct strings *out, struct error *err);

static int look_at(int dir, const char *path, const char *name, unsigned depth, struct strings *out,
                   struct error *err)
{
    struct stat status;

    if (fstatat(dir, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : error_sys(err, "look at %s", path);
    if (is_closed(&status)) {
        strings_add(out, path);
        return 0;
    }
    if (!S_ISDIR(status.st_mode))
        return 0;
    int below = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    return below < 0 ? error_sys(err, "open %s", path) : walk(below, path, depth + 1, out, err);
}

/* Closes `fd`. */
static int walk(int fd, const char *above, unsigned depth, struct strings *out, struct error *err)
{
    autoclosedir DIR *entries = fdopendir(fd);

    if (!entries) {
        close(fd);
        return error_sys(err, "read %s", above);
    }
    if (depth > DEPTH_MAX)
        return error_set(err, ERROR_REFUSED, "%s is nested too deeply", above);
    for (const struct dirent *entry; (entry = sys_next_entry(entries));) {
        autofree char *path = *above ? text_format("%s/%s", above, entry->d_name) : text_copy(entry->d_name);

        if (entry->d_type != DT_LNK && look_at(fd, path, entry->d_name, depth, out, err) < 0)
            return -1;
    }
    return 0;
}

int closed_find(int fd, struct strings *out, struct error *err)
{
    int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return again < 0 ? error_sys(err, "open a tree") : walk(again, "", 0, out, err);
}
