#include "keeper/uppers.h"

#include "base/own.h"
#include "base/text.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_upper(const char *name)
{
    return name[0] == 'u' && name[1] && !name[1 + strspn(name + 1, "0123456789")];
}

static DIR *list(int dir, const char *name)
{
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *entries = fd < 0 ? NULL : fdopendir(fd);

    if (!entries && fd >= 0)
        close(fd);
    return entries;
}

bool uppers_exist(const struct stack_place *place)
{
    autoclosedir DIR *entries = list(place->sandbox, ".");

    for (const struct dirent *entry; entries && (entry = sys_next_entry(entries));)
        if (is_upper(entry->d_name))
            return true;
    return false;
}

/* A mode or an owner of the tree's own top lies in no entry. */
static bool looks_otherwise(const struct stack_place *place, const char *name, const struct strings *stack)
{
    struct stat now, before;

    if (fstatat(place->sandbox, name, &now, AT_SYMLINK_NOFOLLOW) < 0)
        return true;
    for (size_t i = 0; i < stack->len; i++) {
        autofree char *path = text_format("%s/%s", stack->items[i], name);

        if (fstatat(place->layers, path, &before, AT_SYMLINK_NOFOLLOW) == 0)
            return now.st_mode != before.st_mode || now.st_uid != before.st_uid || now.st_gid != before.st_gid;
        if (errno != ENOENT)
            return true;
    }
    return false;
}

static bool is_dirty(const struct stack_place *place, const char *name, const struct strings *stack)
{
    autoclosedir DIR *entries = list(place->sandbox, name);

    return !entries || sys_next_entry(entries) || looks_otherwise(place, name, stack);
}

static uint64_t bit_of(const char *name)
{
    unsigned long number = strtoul(name + 1, NULL, 10);

    return number < STACK_TREES_MAX ? 1ULL << number : UPPERS_ALL;
}

uint64_t uppers_dirty(const struct stack_place *place, const struct strings *stack)
{
    autoclosedir DIR *entries = list(place->sandbox, ".");
    uint64_t dirty = entries ? 0 : UPPERS_ALL;

    for (const struct dirent *entry; entries && (entry = sys_next_entry(entries));)
        if (is_upper(entry->d_name) && (!place->trees || place->trees & bit_of(entry->d_name)) &&
            is_dirty(place, entry->d_name, stack))
            dirty |= bit_of(entry->d_name);
    return dirty;
}

bool uppers_are_dirty(const struct stack_place *place, const struct strings *stack)
{
    return uppers_dirty(place, stack) != 0;
}

static uint64_t trees_of(const struct stack_place *place, const char *lid)
{
    autoclosedir DIR *entries = list(place->layers, lid);
    uint64_t trees = entries ? 0 : UPPERS_ALL;

    for (const struct dirent *entry; entries && (entry = sys_next_entry(entries));)
        if (is_upper(entry->d_name))
            trees |= bit_of(entry->d_name);
    return trees;
}

/* They end in the same layers, unless one of them was merged. */
uint64_t uppers_between(const struct stack_place *place, const struct strings *one, const struct strings *other)
{
    size_t a = one->len, b = other->len;
    uint64_t trees = 0;

    while (a && b && strcmp(one->items[a - 1], other->items[b - 1]) == 0) {
        a--;
        b--;
    }
    while (a)
        trees |= trees_of(place, one->items[--a]);
    while (b)
        trees |= trees_of(place, other->items[--b]);
    return trees;
}
