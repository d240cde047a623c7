#include "box/image_dir.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "box/host.h"
#include "box/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int image_dir_add(const char *path, const char *why, const struct host *host, struct trees *trees,
                  struct error *err)
{
    autoclose int fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat status;

    (void)host;
    if (fd < 0 || fstat(fd, &status) < 0)
        return error_sys(err, "open the image directory %s", path);
    *array_add(trees) = (struct tree){
        .source = text_copy(path),
        .target = text_copy("/"),
        .mode = TREE_COW,
        .device = status.st_dev,
        .inode = status.st_ino,
        .why = why,
    };
    return 0;
}

/* The state directory itself may lie below the image only if the image is not the machine's own
 * root: that one would show every host file. */
int image_dir_trees(const char *path, const struct host *host, struct trees *trees, struct error *err)
{
    autofree char *real = realpath(path, NULL);
    struct stat status;

    if (!real) {
        error_sys(err, "image %s", path);
        return error_hint(err, "give the root directory of an unpacked image, or `host`");
    }
    if (stat(real, &status) < 0 || !S_ISDIR(status.st_mode))
        return error_set(err, ERROR_INVALID,
                         "image %s is not a directory; give the root directory of an unpacked image, or `host`",
                         real);
    if (strcmp(real, "/") == 0 || path_within(host->state, real) || path_within(real, host->state) ||
        path_within(host->home, real))
        return error_set(
            err, ERROR_REFUSED,
            "image %s would show your own files inside; give a directory that holds only the image, or `host`",
            real);

    autofree char *usr = text_format("%s/usr", real), *bin = text_format("%s/bin", real);

    if (access(usr, F_OK) < 0 && access(bin, F_OK) < 0)
        return error_set(err, ERROR_INVALID,
                         "image %s has neither /usr nor /bin; give the root directory of an unpacked image",
                         real);
    return image_dir_add(real, "image", host, trees, err);
}
