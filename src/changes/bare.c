#include "changes/bare.h"

#include "base/own.h"
#include "changes/classify.h"
#include "changes/patch.h"
#include "changes/scan.h"

#include <fcntl.h>
#include <string.h>

/* In the base only what git asks for is looked for: the directory may be large. */
static void add_names_of_base(int base, const char *directory, struct strings *names)
{
    static const char *const wanted[] = { "HEAD", "commondir", "objects", "refs" };
    autoclose int dir = scan_open(base, directory, O_PATH | O_DIRECTORY);

    for (size_t i = 0; dir >= 0 && i < ARRAY_LEN(wanted); i++)
        if (faccessat(dir, wanted[i], F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            strings_add(names, wanted[i]);
}

static void add_names_of_upper(int upper, const char *directory, struct strings *names)
{
    autoclose int dir = scan_open(upper, directory, O_PATH | O_DIRECTORY);
    autoentries struct entries entries = { 0 };
    bool cut = false;

    if (dir < 0 || scan_list(dir, ENTRIES_MAX, &cut, &entries) < 0)
        return;
    for (size_t i = 0; i < entries.len; i++)
        if (entries.items[i].type != DT_CHR)
            strings_add(names, entries.items[i].name);
}

static bool is_bare(const struct patch_source *source, const char *directory)
{
    autostrings struct strings names = STRINGS_NONE;

    add_names_of_upper(source->upper, directory, &names);
    add_names_of_base(source->base, directory, &names);
    return classify_bare_repository((const char *const *)names.items, names.len);
}

static void pop(struct bare_walk *walk)
{
    free(walk->items[--walk->len].directory);
}

void bare_free(struct bare_walk *walk)
{
    while (walk->len)
        pop(walk);
    free(walk->items);
    *walk = BARE_WALK_NONE;
}

static bool is_around(const char *directory, const char *path)
{
    size_t len = strlen(directory);

    return !len || (strncmp(directory, path, len) == 0 && path[len] == '/');
}

static void push(struct bare_walk *walk, const struct patch_source *source, char *directory)
{
    *array_add(walk) = (struct bare_step){ .directory = directory, .bare = is_bare(source, directory) };
}

const char *bare_part(struct bare_walk *walk, const struct patch_source *source, const char *path)
{
    while (walk->len && !is_around(walk->items[walk->len - 1].directory, path))
        pop(walk);
    if (!walk->len)
        push(walk, source, text_copy(""));

    size_t known = strlen(walk->items[walk->len - 1].directory);

    for (const char *end = strchr(path + known + (known > 0), '/'); end; end = strchr(end + 1, '/'))
        push(walk, source, text_format("%.*s", (int)(end - path), path));
    for (size_t i = 0; i < walk->len; i++)
        if (walk->items[i].bare)
            return path + strlen(walk->items[i].directory) + (*walk->items[i].directory ? 1 : 0);
    return NULL;
}
