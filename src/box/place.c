#include "box/place.h"

#include "base/own.h"
#include "base/text.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>

/* The kernel's own idea of where the handle is.  A path that went away since carries " (deleted)",
 * one outside our root has no leading slash: both fail the comparison or the look at the slash. */
static char *path_of(int fd, const struct stat *stat_of_fd)
{
    char path[PATH_MAX];
    struct stat again;
    ssize_t len = readlink(sys_fd_path(fd).text, path, sizeof path - 1);

    if (len < 0)
        return NULL;
    path[len] = '\0';
    if (path[0] != '/' || lstat(path, &again) < 0 || again.st_dev != stat_of_fd->st_dev ||
        again.st_ino != stat_of_fd->st_ino) {
        errno = ESTALE;
        return NULL;
    }
    return text_copy(path);
}

int place_open(int at, const char *path, struct place *out)
{
    autoclose int fd = sys_openat2(at, path, O_PATH | O_CLOEXEC, RESOLVE_NO_MAGICLINKS);
    struct stat found;

    if (fd < 0 || fstat(fd, &found) < 0)
        return -1;
    char *real = path_of(fd, &found);
    if (!real)
        return -1;
    *out = (struct place){ .fd = steal_fd(&fd), .path = real, .stat = found };
    return 0;
}

void place_close(struct place *place)
{
    own_close(&place->fd);
    free(place->path);
    *place = PLACE_NONE;
}

void place_move(struct place *to, struct place *from)
{
    place_close(to);
    *to = *from;
    *from = PLACE_NONE;
}
