#include "box/names.h"

#include "base/own.h"
#include "base/text.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAMES_MAX = 1000 };

void names_read(int dir, struct names *out)
{
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autoclosedir DIR *entries = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry = NULL;

    if (fd >= 0 && !entries)
        close(fd);
    while (entries && out->sorted.len < NAMES_MAX && (entry = readdir(entries)))
        strings_add(&out->sorted, entry->d_name);
    out->all = entries && !entry;
    strings_sort(&out->sorted);
}

static int compare(const void *path, const void *item)
{
    const char *name = *(char *const *)item;
    size_t len = strcspn(path, "/");
    int order = strncmp(path, name, len);

    return order ? order : name[len] ? -1 : 0;
}

bool names_may_have(const struct names *names, const char *path)
{
    return !names->all ||
           bsearch(path, names->sorted.items, names->sorted.len, sizeof *names->sorted.items, compare);
}
