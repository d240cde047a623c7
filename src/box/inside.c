#include "box/steps.h"

#include "base/own.h"
#include "base/text.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int inside_open(const struct executor *x, const char *path, uint64_t flags)
{
    while (*path == '/')
        path++;
    return sys_openat2(x->root, *path ? path : ".", flags | O_PATH, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
}

/* What is made inside by a process with the host's ids must belong to root inside. */
int inside_own(const struct executor *x, int dir, const char *name)
{
    if (!x->plan->ids.shifted || geteuid() != 0 || x->userns < 0)
        return 0;
    return fchownat(dir, name, x->plan->ids.base, x->plan->ids.base, AT_SYMLINK_NOFOLLOW);
}

/* Opens the directory that `path` lies in and points *name at its last component. */
int inside_parent(const struct executor *x, const char *path, const char **name)
{
    const char *slash = strrchr(path, '/');
    autofree char *parent =
        slash && slash != path ? text_format("%.*s", (int)(slash - path), path) : text_copy("/");

    *name = slash ? slash + 1 : path;
    return inside_open(x, parent, O_DIRECTORY);
}

/* Opens a directory, after mkdir -p where it is missing. */
int inside_directory(const struct executor *x, const char *path, mode_t mode)
{
    int there = inside_open(x, path, O_DIRECTORY);

    if (there >= 0 || errno != ENOENT || !path[1])
        return there;
    const char *name = strrchr(path, '/') + 1;
    autofree char *above = text_format("%.*s", name - path > 1 ? (int)(name - path - 1) : 1, path);
    autoclose int parent = inside_directory(x, above, 0755);

    if (parent < 0 || mkdirat(parent, name, mode) < 0 || inside_own(x, parent, name) < 0)
        return -1;
    return openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* A file to mount on. */
int inside_make_file(const struct executor *x, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash + 1;
    autofree char *parent_path = text_format("%.*s", (int)(slash - path), path);
    autoclose int parent = inside_directory(x, *parent_path ? parent_path : "/", 0755);

    /* Never the image's own: it may be a link, or a FIFO that waits for somebody. */
    if (parent < 0 || (unlinkat(parent, name, 0) < 0 && errno != ENOENT))
        return -1;
    if (mknodat(parent, name, S_IFREG | 0600, 0) < 0)
        return -1;
    return inside_own(x, parent, name);
}

/* Remembers a mount, for the comparison at the end. */
int mount_remember_id(struct executor *x, uint64_t id, uint64_t flags)
{
    struct made *made = x->made;

    if (!id)
        return -1; /* errno tells why there is none */
    errno = ENOSPC;
    if (made->count == made->room)
        return -1;
    for (size_t i = 0; i < made->count; i++)
        if (made->items[i].id == id) { /* an older mount is still what one sees there: the new one is not */
            errno = ENODEV;
            return -1;
        }
    made->items[made->count++] = (struct made_mount){ .id = id, .flags = flags, .step = x->step };
    return 0;
}

int mount_remember(struct executor *x, const char *path, uint64_t flags)
{
    autoclose int fd = inside_open(x, path, 0);

    return mount_remember_id(x, fd < 0 ? 0 : sys_mount_id(fd, ""), flags);
}
