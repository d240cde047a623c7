#include "box/mounts.h"

#include "base/array.h"
#include "base/own.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>

/* The kernel writes space, tab, newline and backslash as three octal digits. */
static void unescape(char *text)
{
    char *to = text;

    for (const char *from = text; *from; to++) {
        if (from[0] == '\\' && strspn(from + 1, "01234567") >= 3) {
            *to = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
            from += 4;
        } else {
            *to = *from++;
        }
    }
    *to = '\0';
}

/* The fifth word of a line of mountinfo. */
static char *mount_point(char *line)
{
    char *rest, *word = strtok_r(line, " ", &rest);

    for (int i = 0; i < 4 && word; i++)
        word = strtok_r(NULL, " ", &rest);
    if (word)
        unescape(word);
    return word;
}

void mounts_below(const char *path, struct strings *out)
{
    FILE *lines = fopen("/proc/self/mountinfo", "re");
    autofree char *line = NULL;
    char page[4096]; /* the kernel writes that much at once, and in smaller parts a good deal of it again */
    size_t room = 0;

    if (lines)
        (void)setvbuf(lines, page, _IOFBF, sizeof page);
    while (lines && getline(&line, &room, lines) > 0) {
        const char *point = mount_point(line);

        if (point && path_within(point, path) && strlen(point) > strlen(path))
            strings_add(out, point);
    }
    if (lines)
        fclose(lines);
    strings_sort(out);
}

static const struct {
    const char *name;
    uint64_t flag;
} flag_names[] = {
    { "ro", MS_RDONLY }, { "nosuid", MS_NOSUID }, { "nodev", MS_NODEV }, { "noexec", MS_NOEXEC }
};

/* True if the comma-separated `options` have `name` among them. */
static bool has_option(const char *options, const char *name)
{
    size_t len = strlen(name);

    for (const char *at = options; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, name, len) == 0 && (at[len] == ',' || at[len] == '\0'))
            return true;
    return false;
}

const char *mounts_lack(const char *options, uint64_t flags)
{
    for (size_t i = 0; i < ARRAY_LEN(flag_names); i++)
        if ((flags & flag_names[i].flag) && !has_option(options, flag_names[i].name))
            return flag_names[i].name;
    return NULL;
}
