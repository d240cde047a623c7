#include "box/mounts.h"

#include "base/array.h"
#include "base/own.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    size_t room = 0;

    while (lines && getline(&line, &room, lines) > 0) {
        const char *point = mount_point(line);

        if (point && path_within(point, path) && strlen(point) > strlen(path))
            strings_add(out, point);
    }
    if (lines)
        fclose(lines);
    strings_sort(out);
}
