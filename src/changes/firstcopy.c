#include "changes/scan.h"

#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

/* What one layer has at a path. */
struct found {
    bool there;   /* a file or directory */
    bool copied;  /* which the kernel has copied from below */
    bool covered; /* nothing below it is seen */
    struct origin origin;
};

/* The directory around the last component, which `*name` becomes; -1: the layer has none. */
static int open_around(const struct scan *scan, int layer, const char *path, const char **name,
                       struct found *found)
{
    autoclose int at = scan_open(layer, "", O_PATH | O_DIRECTORY);

    for (const char *slash; at >= 0 && (slash = strchr(path, '/')); path = slash + 1) {
        autofree char *part = text_format("%.*s", (int)(slash - path), path);
        int below = scan_open(at, part, O_PATH | O_DIRECTORY);

        if (below < 0) {
            found->covered |= errno != ENOENT; /* a white-out, or a file */
            return -1;
        }
        found->covered |= mark_is_opaque(scan->source->marks, at, part);
        close(at);
        at = below;
    }
    *name = path;
    return steal_fd(&at);
}

static struct found look(const struct scan *scan, int layer, const char *path)
{
    enum changes_marks marks = scan->source->marks;
    struct found found = { 0 };
    const char *name = path;
    autoclose int around = open_around(scan, layer, path, &name, &found);
    struct stat status;

    if (around < 0 || fstatat(around, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return found;
    found.there = !mark_is_whiteout(marks, around, name, &status);
    found.covered |= !found.there || (S_ISDIR(status.st_mode) && mark_is_opaque(marks, around, name));
    found.copied = found.there && mark_has_origin(marks, around, name);
    if (found.copied)
        (void)mark_origin(marks, around, name, &found.origin);
    return found;
}

/* A copy of what an older layer has was made inside; and where that file has several names, which it has from
 * being merged, the kernel notes no copy at all.  So it is the oldest of those that are seen through each other
 * that tells. */
bool firstcopy_find(const struct scan *scan, const char *path, struct origin *origin)
{
    const struct changes_source *source = scan->source;
    bool copied = false;

    for (size_t i = 0; source->line && i < source->line->len; i++) {
        autoclose int layer = scan_open(source->line_at, source->line->items[i], O_PATH | O_DIRECTORY);
        struct found found = { 0 };

        if (layer >= 0)
            found = look(scan, layer, path);
        if (found.there)
            copied = found.copied;
        if (found.there && found.copied)
            *origin = found.origin;
        if (found.covered)
            break;
    }
    return copied;
}
