#include "changes/patch.h"

#include "base/linediff.h"
#include "base/memory.h"
#include "base/own.h"
#include "base/text.h"
#include "changes/binary.h"
#include "changes/changes.h"
#include "changes/patchtree.h"
#include "changes/scan.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    CONTENT_MAX = 16 << 20,  /* larger files are shown as binary ones */
    LITERAL_MAX = 512 << 20, /* and even larger ones not at all */
    BINARY_LOOK = 8000,      /* as far as git looks for a NUL */
};

void patch_bytes_free(struct patch_bytes *bytes)
{
    free(bytes->bytes);
    *bytes = (struct patch_bytes){ 0 };
}

void patch_read_open(int fd, struct patch_bytes *out)
{
    struct stat status;
    ssize_t got = -1;

    *out = (struct patch_bytes){ .binary = true };
    if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) || status.st_size > CONTENT_MAX)
        return;
    out->bytes = memory_resize(NULL, (size_t)status.st_size + 1);
    got = content_read(fd, 0, out->bytes, (size_t)status.st_size);
    if (got < 0) {
        patch_bytes_free(out);
        out->binary = true;
        return;
    }
    out->len = (size_t)got;
    out->bytes[out->len] = '\0';
    out->binary = memchr(out->bytes, '\0', out->len < BINARY_LOOK ? out->len : BINARY_LOOK) != NULL;
}

void patch_read_file(int root, const char *path, struct patch_bytes *out)
{
    autoclose int fd = scan_open_file(root, path);
    bool gone = fd < 0 && (scan_is_gone(errno) || errno == EINVAL);

    patch_read_open(fd, out);
    out->gone = gone;
}

static void read_side(int root, const char *path, const struct side *side, struct patch_bytes *out)
{
    *out = (struct patch_bytes){ 0 };
    if (side->type == SIDE_LINK && side->target) {
        out->bytes = text_copy(side->target);
        out->len = strlen(side->target);
    } else if (side->type == SIDE_FILE) {
        patch_read_file(root, path, out);
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

/* The names before and after.  What came or went has only one. */
static const char *name_before(const struct change *change)
{
    return change->from && is_shown_as_patch(&change->old) ? change->from : change->path;
}

static const char *name_after(const struct change *change)
{
    return is_shown_as_patch(&change->new) ? change->path : name_before(change);
}

static void add_head(const struct change *change, struct text *out)
{
    const char *before = name_before(change), *after = name_after(change);
    bool old = is_shown_as_patch(&change->old), new = is_shown_as_patch(&change->new);

    text_add(out, "diff --git ");
    add_name(out, "a/", before);
    text_add(out, " ");
    add_name(out, "b/", after);
    text_add(out, "\n");
    if (!old)
        text_addf(out, "new file mode %06o\n", git_mode(&change->new));
    else if (!new)
        text_addf(out, "deleted file mode %06o\n", git_mode(&change->old));
    else if (git_mode(&change->old) != git_mode(&change->new))
        text_addf(out, "old mode %06o\nnew mode %06o\n", git_mode(&change->old), git_mode(&change->new));
    if (strcmp(before, after) != 0) {
        text_add(out, "similarity index 100%\n");
        add_line(out, "rename from ", "", before);
        add_line(out, "rename to ", "", after);
    }
    if (old && new && change->new.type == SIDE_LINK) /* nothing else says that it is one */
        text_add(out, "index 0000000..0000000 120000\n");
}

/* Also of files that are too big to be compared line by line. */
static bool read_all(int root, const char *path, const struct patch_bytes *have, struct text *out)
{
    if (!have->bytes)
        return content_text(root, path, LITERAL_MAX, out);
    text_add_bytes(out, have->bytes, have->len);
    return true;
}

static void add_git_name(struct text *out, const struct text *bytes, bool there)
{
    char name[BINARY_HEX + 1] = "0000000000000000000000000000000000000000";

    if (there)
        binary_name(text_string(bytes), bytes->len, name);
    text_add(out, name);
}

static void add_literal(const struct patch_source *source, const struct change *change,
                        const struct patch_bytes *old, const struct patch_bytes *new, struct text *out)
{
    autotext struct text before = TEXT_NONE, after = TEXT_NONE;
    bool had = is_shown_as_patch(&change->old), has = is_shown_as_patch(&change->new);

    if ((had && !read_all(source->base, name_before(change), old, &before)) ||
        (has && !read_all(source->upper, change->path, new, &after))) {
        text_add(out, "# too big for a patch, or not readable: ");
        add_line(out, "", "", change->path);
        return;
    }
    add_head(change, out);
    text_add(out, "index ");
    add_git_name(out, &before, had);
    text_add(out, "..");
    add_git_name(out, &after, has);
    if (had && has && git_mode(&change->old) == git_mode(&change->new))
        text_addf(out, " %06o", git_mode(&change->new));
    text_add(out, "\nGIT binary patch\n");
    binary_add_literal(out, text_string(&after), after.len);
}

static void add_side_name(struct text *out, const struct side *side, const char *prefix, const char *path)
{
    if (is_shown_as_patch(side))
        add_name(out, prefix, path);
    else
        text_add(out, "/dev/null");
}

/* As git does without --binary; `git apply` takes it for what it is, and refuses. */
static void add_differ(const struct change *change, struct text *out)
{
    text_add(out, "Binary files ");
    add_side_name(out, &change->old, "a/", name_before(change));
    text_add(out, " and ");
    add_side_name(out, &change->new, "b/", name_after(change));
    text_add(out, " differ\n");
}

static void add_sizes(const struct change *change, const char *more, struct text *out)
{
    text_addf(out, "# binary: %llu bytes before, %llu after%s\n", (unsigned long long)change->old.size,
              (unsigned long long)change->new.size, more);
}

static void add_binary(const struct patch_source *source, const struct change *change,
                       const struct patch_bytes *old, const struct patch_bytes *new, struct text *out)
{
    bool named = !source->for_eyes && source->binary_most && change->new.size > source->binary_most;

    if (!source->for_eyes && !named) {
        add_literal(source, change, old, new, out);
        return;
    }
    if (named) { /* git takes what stands right behind a head for its patch, and anything else for its end */
        add_sizes(change, "; --binary writes them", out);
        add_head(change, out);
        add_differ(change, out);
    } else {
        add_head(change, out);
        add_sizes(change, "", out);
    }
}

/* Where a name has blanks, a tab says where it ends. */
static void add_name_line(struct text *out, const char *head, const char *prefix, const char *path)
{
    text_add(out, head);
    add_name(out, prefix, path);
    text_add(out, strchr(path, ' ') ? "\t\n" : "\n");
}

static void add_text(const struct change *change, const struct patch_bytes *old, const struct patch_bytes *new,
                     struct text *out)
{
    autotext struct text hunks = TEXT_NONE;

    linediff_hunks(old->bytes ? old->bytes : "", old->len, new->bytes ? new->bytes : "", new->len, &hunks);
    add_head(change, out);
    if (!hunks.len)
        return;
    old->bytes ? add_name_line(out, "--- ", "a/", name_before(change)) : text_add(out, "--- /dev/null\n");
    new->bytes ? add_name_line(out, "+++ ", "b/", name_after(change)) : text_add(out, "+++ /dev/null\n");
    text_add_bytes(out, text_string(&hunks), hunks.len);
}

/* Whether git would see a difference at all. */
static bool is_for_git(const struct change *change)
{
    return change->kind != CHANGE_MODE || git_mode(&change->old) != git_mode(&change->new) ||
           strcmp(name_before(change), name_after(change)) != 0;
}

/* The part of a mode that git does not keep. */
static void add_mode_remark(const struct change *change, struct text *out)
{
    const struct side *old = &change->old, *new = &change->new;
    bool usual = new->mode == 0644 || new->mode == 0755 || new->mode == 0664 || new->mode == 0775;

    if (new->type != SIDE_FILE || (old->type == SIDE_FILE ? ((old->mode ^ new->mode) & ~0111u) == 0 : usual))
        return;
    text_add(out, "# mode of ");
    add_name(out, "", change->path);
    if (old->type == SIDE_FILE)
        text_addf(out, " was %04o and", (unsigned)old->mode);
    text_addf(out, " is %04o\n", (unsigned)new->mode);
}

static void add_patch(const struct patch_source *source, const struct change *change, struct text *out)
{
    __attribute__((cleanup(patch_bytes_free))) struct patch_bytes old = { 0 }, new = { 0 };
    bool same = change->kind == CHANGE_MODE || change->kind == CHANGE_RENAMED;

    add_mode_remark(change, out);
    if (!is_for_git(change))
        return;
    if (same) {
        add_head(change, out);
        return;
    }
    patch_read(source, change, &old, &new);
    if (old.gone || new.gone)
        add_line(out, "# gone meanwhile: ", "", change->path);
    else if (old.binary || new.binary)
        add_binary(source, change, &old, &new, out);
    else
        add_text(change, &old, &new, out);
}

/* What no patch can say. */
static void add_remark(const struct change *change, struct text *out)
{
    static const char *const kinds[] = {
        [CHANGE_REMOVED] = "removed",    [CHANGE_ADDED] = "new",   [CHANGE_CHANGED] = "changed",
        [CHANGE_MODE] = "other mode of", [CHANGE_RETYPED] = "now",
    };
    const struct side *side = change->kind == CHANGE_REMOVED ? &change->old : &change->new;

    text_addf(out, "# %s %s ", kinds[change->kind],
              side->type == SIDE_DIRECTORY ? "directory" : "special file");
    add_name(out, "", change->path);
    if (change->count)
        text_addf(out, " with %llu entries", (unsigned long long)change->count);
    text_addf(out, " (%04o)\n", (unsigned)side->mode);
}

static void add_one(const struct patch_source *source, const struct change *change, struct text *out);

/* A file that became a link, or a directory, goes and comes. */
static void add_retyped(const struct patch_source *source, const struct change *change, struct text *out)
{
    struct change gone = *change, came = *change;

    gone.kind = CHANGE_REMOVED;
    gone.new = (struct side){ 0 };
    came.kind = CHANGE_ADDED;
    came.old = (struct side){ 0 };
    add_one(source, &gone, out);
    add_one(source, &came, out);
}

static void add_one(const struct patch_source *source, const struct change *change, struct text *out)
{
    if (change->kind == CHANGE_RETYPED)
        add_retyped(source, change, out);
    else if (is_shown_as_patch(&change->old) || is_shown_as_patch(&change->new))
        add_patch(source, change, out);
    else
        add_remark(change, out);
}

struct adding {
    const struct patch_source *source;
    struct text *out;
};

static void add_implied(void *owner, const struct change *change)
{
    const struct adding *adding = owner;

    add_one(adding->source, change, adding->out);
}

void patch_add(const struct patch_source *source, const struct changes *changes, size_t index, struct text *out)
{
    const struct change *change = &changes->items[index];
    struct adding adding = { source, out };

    add_one(source, change, out);
    if (!source->for_eyes && !patchtree_walk(source->base, changes, change, add_implied, &adding)) {
        text_add(out, "# too many files below for a patch: ");
        add_line(out, "", "", change->path);
    }
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
