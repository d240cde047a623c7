#include "changes/patch.h"

#include "base/linediff.h"
#include "base/memory.h"
#include "base/own.h"
#include "base/text.h"
#include "changes/changes.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    CONTENT_MAX = 16 << 20, /* larger files are shown as binary ones */
    BINARY_LOOK = 8000,     /* as far as git looks for a NUL */
};

void patch_bytes_free(struct patch_bytes *bytes)
{
    free(bytes->bytes);
    *bytes = (struct patch_bytes){ 0 };
}

static void read_file(int root, const char *path, struct patch_bytes *out)
{
    autoclose int fd = sys_openat2(root, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
                                   RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
    struct stat status;

    out->binary = true;
    if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) || status.st_size > CONTENT_MAX)
        return;
    out->bytes = memory_resize(NULL, (size_t)status.st_size + 1);
    for (ssize_t got = 1; got > 0 && out->len<(size_t)status.st_size; out->len += got> 0 ? (size_t)got : 0)
        got = read(fd, out->bytes + out->len, (size_t)status.st_size - out->len);
    out->binary = memchr(out->bytes, '\0', out->len < BINARY_LOOK ? out->len : BINARY_LOOK) != NULL;
}

static void read_side(int root, const char *path, const struct side *side, struct patch_bytes *out)
{
    *out = (struct patch_bytes){ 0 };
    if (side->type == SIDE_LINK && side->target) {
        out->bytes = text_copy(side->target);
        out->len = strlen(side->target);
    } else if (side->type == SIDE_FILE) {
        read_file(root, path, out);
    }
}

void patch_read(const struct patch_source *source, const struct change *change, struct patch_bytes *old,
                struct patch_bytes *new)
{
    read_side(source->base, change->from ? change->from : change->path, &change->old, old);
    read_side(source->upper, change->path, &change->new, new);
}

/* --- names and modes as git writes them --- */

static bool is_plain_name(const char *path)
{
    for (const char *at = path; *at; at++)
        if ((unsigned char)*at < 0x20 || (unsigned char)*at >= 0x7f || *at == '"' || *at == '\\')
            return false;
    return true;
}

static void add_name(struct text *out, const char *prefix, const char *path)
{
    if (is_plain_name(path)) {
        text_addf(out, "%s%s", prefix, path);
        return;
    }
    text_addf(out, "\"%s", prefix);
    for (const char *at = path; *at; at++) {
        unsigned char byte = (unsigned char)*at;

        if (byte == '"' || byte == '\\')
            text_addf(out, "\\%c", byte);
        else if (byte < 0x20 || byte >= 0x7f)
            text_addf(out, "\\%03o", byte);
        else
            text_add_bytes(out, at, 1);
    }
    text_add(out, "\"");
}

static void add_line(struct text *out, const char *head, const char *prefix, const char *path)
{
    text_add(out, head);
    add_name(out, prefix, path);
    text_add(out, "\n");
}

/* Git knows three kinds of things and one bit of their modes. */
static unsigned git_mode(const struct side *side)
{
    if (side->type == SIDE_LINK)
        return 0120000;
    return side->mode & 0100 ? 0100755 : 0100644;
}

static bool is_shown_as_patch(const struct side *side)
{
    return side->type == SIDE_FILE || side->type == SIDE_LINK;
}

/* --- parts of a patch --- */

static void add_head(const struct change *change, struct text *out)
{
    const char *from = change->from ? change->from : change->path;
    bool old = is_shown_as_patch(&change->old), new = is_shown_as_patch(&change->new);

    text_add(out, "diff --git ");
    add_name(out, "a/", from);
    text_add(out, " ");
    add_name(out, "b/", change->path);
    text_add(out, "\n");
    if (!old)
        text_addf(out, "new file mode %06o\n", git_mode(&change->new));
    else if (!new)
        text_addf(out, "deleted file mode %06o\n", git_mode(&change->old));
    else if (git_mode(&change->old) != git_mode(&change->new))
        text_addf(out, "old mode %06o\nnew mode %06o\n", git_mode(&change->old), git_mode(&change->new));
    else if (change->new.type == SIDE_LINK) /* nothing else says that it is one */
        text_add(out, "index 0000000..0000000 120000\n");
    if (change->kind == CHANGE_RENAMED) {
        text_add(out, "similarity index 100%\n");
        add_line(out, "rename from ", "", from);
        add_line(out, "rename to ", "", change->path);
    }
}

static void add_hunks(const struct change *change, const struct patch_bytes *old, const struct patch_bytes *new,
                      struct text *out)
{
    const char *from = change->from ? change->from : change->path;
    autotext struct text hunks = TEXT_NONE;

    if (old->binary || new->binary) {
        if (change->kind == CHANGE_MODE || change->kind == CHANGE_RENAMED)
            return;
        text_add(out, "Binary files ");
        old->bytes || old->binary ? add_name(out, "a/", from) : text_add(out, "/dev/null");
        text_add(out, " and ");
        new->bytes || new->binary ? add_name(out, "b/", change->path) : text_add(out, "/dev/null");
        text_add(out, " differ\n");
        return;
    }
    linediff_hunks(old->bytes ? old->bytes : "", old->len, new->bytes ? new->bytes : "", new->len, &hunks);
    if (!hunks.len)
        return;
    old->bytes ? add_line(out, "--- ", "a/", from) : text_add(out, "--- /dev/null\n");
    new->bytes ? add_line(out, "+++ ", "b/", change->path) : text_add(out, "+++ /dev/null\n");
    text_add_bytes(out, text_string(&hunks), hunks.len);
}

static void add_patch(const struct patch_source *source, const struct change *change, struct text *out)
{
    __attribute__((cleanup(patch_bytes_free))) struct patch_bytes old = { 0 }, new = { 0 };

    add_head(change, out);
    patch_read(source, change, &old, &new);
    add_hunks(change, &old, &new, out);
}

/* What no patch can say. */
static void add_remark(const struct change *change, struct text *out)
{
    static const char *const kinds[] = {
        [CHANGE_REMOVED] = "removed",    [CHANGE_ADDED] = "new",   [CHANGE_CHANGED] = "changed",
        [CHANGE_MODE] = "other mode of", [CHANGE_RETYPED] = "now", [CHANGE_RENAMED] = "renamed"
    };
    const struct side *side = change->kind == CHANGE_REMOVED ? &change->old : &change->new;

    text_addf(out, "# %s %s ", kinds[change->kind],
              side->type == SIDE_DIRECTORY ? "directory" : "special file");
    add_name(out, "", change->path);
    if (change->from && change->kind == CHANGE_RENAMED) {
        text_add(out, " from ");
        add_name(out, "", change->from);
    }
    if (change->count)
        text_addf(out, " with %llu entries", (unsigned long long)change->count);
    text_addf(out, " (%04o)\n", (unsigned)side->mode);
}

/* A file that became a link, or a directory, goes and comes. */
static void add_retyped(const struct patch_source *source, const struct change *change, struct text *out)
{
    struct change gone = *change, came = *change;

    gone.kind = CHANGE_REMOVED;
    gone.new = (struct side){ 0 };
    came.kind = CHANGE_ADDED;
    came.old = (struct side){ 0 };
    came.from = NULL;
    patch_add(source, &gone, out);
    patch_add(source, &came, out);
}

void patch_add(const struct patch_source *source, const struct change *change, struct text *out)
{
    if (change->kind == CHANGE_RETYPED)
        add_retyped(source, change, out);
    else if (is_shown_as_patch(&change->old) || is_shown_as_patch(&change->new))
        add_patch(source, change, out);
    else
        add_remark(change, out);
}

bool patch_count(const struct patch_source *source, const struct change *change, struct linediff_count *out)
{
    __attribute__((cleanup(patch_bytes_free))) struct patch_bytes old = { 0 }, new = { 0 };

    patch_read(source, change, &old, &new);
    *out = (struct linediff_count){ 0 };
    if (old.binary || new.binary || (!old.bytes && !new.bytes))
        return false;
    *out = linediff_count(old.bytes ? old.bytes : "", old.len, new.bytes ? new.bytes : "", new.len);
    return true;
}
