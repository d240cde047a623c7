#include "changes/marks.h"

#include "base/text.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

/* "/proc/self/fd/N/NAME": the calls for attributes take no handle together with a name. */
struct mark_path {
    char text[32 + NAME_MAX + 1];
};

/* The value of an attribute of `name`, which is not followed; -1 if there is none of at most `size`. */
static ssize_t get(enum changes_marks marks, int dir, const char *name, const char *mark, void *value,
                   size_t size)
{
    struct mark_path path;
    char full[64];

    if (snprintf(path.text, sizeof path.text, "/proc/self/fd/%d/%s", dir, name) >= (int)sizeof path.text)
        return -1;
    snprintf(full, sizeof full, "%s.overlay.%s", marks == CHANGES_MARKS_USER ? "user" : "trusted", mark);
    return lgetxattr(path.text, full, value, size);
}

bool mark_is_whiteout(enum changes_marks marks, int dir, const char *name, const struct stat *status)
{
    char ignored[256];

    if (S_ISCHR(status->st_mode))
        return status->st_rdev == makedev(0, 0);
    return S_ISREG(status->st_mode) && status->st_size == 0 &&
           get(marks, dir, name, "whiteout", ignored, sizeof ignored) >= 0;
}

bool mark_is_opaque(enum changes_marks marks, int dir, const char *name)
{
    char value = 0;

    return get(marks, dir, name, "opaque", &value, 1) == 1 && value == 'y';
}

bool mark_has_origin(enum changes_marks marks, int dir, const char *name)
{
    return get(marks, dir, name, "origin", NULL, 0) >= 0;
}

bool mark_origin(enum changes_marks marks, int dir, const char *name, struct origin *out)
{
    unsigned char value[256];
    ssize_t len = get(marks, dir, name, "origin", value, sizeof value);

    return len > 0 && mark_parse_origin(value, (size_t)len, out);
}

/* As fs/overlayfs writes it: version, magic, length of all, flags, type of the handle, the UUID of the
 * file system (which is not compared: there is only one base), the handle. */
bool mark_parse_origin(const unsigned char *bytes, size_t len, struct origin *out)
{
    enum { VERSION, MAGIC, LENGTH, FLAGS, TYPE, UUID, HANDLE = UUID + 16 };

    if (len <= HANDLE || len - HANDLE > ORIGIN_MAX || bytes[VERSION] != 0 || bytes[MAGIC] != 0xfb ||
        bytes[LENGTH] != len)
        return false;
    out->type = bytes[TYPE];
    out->len = (unsigned)(len - HANDLE);
    memcpy(out->bytes, bytes + HANDLE, out->len);
    return true;
}
