#include "changes/bare.h"

#include "base/own.h"
#include "changes/classify.h"
#include "changes/patch.h"
#include "changes/plainname.h"
#include "changes/scan.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>

struct bare_level {
    char *path;
    bool is_one;
};

void bare_free(struct bare *bare)
{
    while (bare->len)
        free(bare->items[--bare->len].path);
    strings_free(&bare->odd);
    free(bare->items);
    bare->items = NULL;
    bare->cap = 0;
}

static bool is_removed(const struct bare *bare, const char *path)
{
    const struct change *change = changes_find(bare->changes, path);

    return change && change->kind == CHANGE_REMOVED;
}

static bool has(int root, const char *path)
{
    autoclose int fd = scan_open(root, path, O_PATH | O_CLOEXEC);

    return fd >= 0;
}

/* The names that decide, of the base; their spelling is the owner's. */
static void add_of_base(const struct bare *bare, const char *directory, struct strings *names)
{
    for (size_t i = 0; i < CLASSIFY_TELLING; i++) {
        autofree char *path = scan_join(directory, classify_telling[i]);

        if (has(bare->source->base, path) && !is_removed(bare, path))
            strings_add(names, classify_telling[i]);
    }
}

static void add_of_upper(const struct bare *bare, const char *directory, struct strings *names)
{
    autoclose int fd = scan_open(bare->source->upper, directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    autoentries struct entries entries = { 0 };

    if (fd < 0 || scan_list(fd, ENTRIES_MAX, NULL, &entries) < 0)
        return;
    for (size_t i = 0; i < entries.len; i++)
        if (entries.items[i].type != DT_CHR && strlen(entries.items[i].name) < 40) /* no white-outs */
            strings_add(names, entries.items[i].name);
}

/* Some file systems take it for the same name. */
static bool is_odd_head(const char *name)
{
    struct plainname plain;

    plainname_clear(&plain);
    return strcmp(name, "HEAD") != 0 && plainname_add(&plain, name, strlen(name)) &&
           strcmp(plain.text, "head") == 0;
}

static void prepare(struct bare *bare)
{
    for (size_t i = 0; i < bare->changes->len; i++) {
        const char *path = bare->changes->items[i].path, *slash = strrchr(path, '/');

        if (is_odd_head(slash ? slash + 1 : path))
            strings_take(&bare->odd, text_format("%.*s", slash ? (int)(slash - path) : 0, path));
    }
    strings_sort(&bare->odd);
    bare->prepared = true;
}

/* Most directories have no HEAD, so that is asked first. */
static bool is_bare(const struct bare *bare, const char *directory)
{
    autostrings struct strings names = STRINGS_NONE;
    autofree char *head = scan_join(directory, "HEAD");

    if (!has(bare->source->upper, head) && !has(bare->source->base, head) &&
        !strings_have(&bare->odd, directory))
        return false;
    add_of_upper(bare, directory, &names);
    add_of_base(bare, directory, &names);
    return names.len && classify_bare_repository((const char *const *)names.items, names.len);
}

/* What is called so is known as a repository by its name, and so is what is in it. */
static bool is_git(const char *directory)
{
    return strcasecmp(directory, ".git") == 0 || strncasecmp(directory, ".git/", 5) == 0 ||
           strcasestr(directory, "/.git/") ||
           (strlen(directory) > 5 && strcasecmp(directory + strlen(directory) - 5, "/.git") == 0);
}

static bool is_around(const char *directory, const char *path)
{
    size_t len = strlen(directory);

    return !len || (strncmp(directory, path, len) == 0 && path[len] == '/');
}

/* The directory "" is the workspace itself. */
static const char *part_below(const char *directory, const char *path)
{
    return path + strlen(directory) + (*directory ? 1 : 0);
}

const char *bare_below(struct bare *bare, const char *path)
{
    const char *from, *found = NULL;

    if (!bare->prepared)
        prepare(bare);
    while (bare->len && !is_around(bare->items[bare->len - 1].path, path))
        free(bare->items[--bare->len].path);
    if (!bare->len)
        *array_add(bare) = (struct bare_level){ text_copy(""), is_bare(bare, "") };
    from = part_below(bare->items[bare->len - 1].path, path);
    for (const char *slash; (slash = strchr(from, '/')); from = slash + 1) {
        char *directory = text_format("%.*s", (int)(slash - path), path);

        *array_add(bare) = (struct bare_level){ directory, !is_git(directory) && is_bare(bare, directory) };
    }
    for (size_t i = 0; i < bare->len; i++)
        if (bare->items[i].is_one)
            found = part_below(bare->items[i].path, path);
    return found;
}
