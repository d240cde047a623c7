/* Reads the mounts back before a command is asked for.  What counts is the kernel's own list: each mount
 * that was made must be in it with its flags, and nothing else may be. */

#include "box/execute.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/own.h"
#include "base/text.h"
#include "box/mounts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* "36 35 98:0 /root /place options ...": the words of a line, split in place. */
static bool split_line(char *line, uint64_t *id, uint64_t *parent, char **place, char **options)
{
    char *rest;
    char *words[6] = { strtok_r(line, " ", &rest) };

    for (size_t i = 1; i < ARRAY_LEN(words) && words[i - 1]; i++)
        words[i] = strtok_r(NULL, " ", &rest);
    *id = words[0] ? strtoull(words[0], NULL, 10) : 0;
    *parent = words[0] && words[1] ? strtoull(words[1], NULL, 10) : 0;
    *place = words[4];
    *options = words[5];
    return *id && *options;
}

static struct made_mount *find(struct made *made, uint64_t id)
{
    for (size_t i = 0; i < made->count; i++)
        if (made->items[i].id == id)
            return &made->items[i];
    return NULL;
}

static int check_line(struct made *all, char *line, struct error *err)
{
    struct made_mount *made;
    char *place, *options;
    uint64_t id, parent;

    if (!split_line(line, &id, &parent, &place, &options))
        return error_set(err, ERROR_SYSTEM, "a line of mountinfo cannot be read");
    made = find(all, id);
    if (!made)
        return error_set(err, ERROR_REFUSED, "there is a mount at %s that is not in the plan", place);
    made->parent = parent;
    const char *lacks = mounts_lack(options, made->flags);

    return lacks ? error_set(err, ERROR_REFUSED, "the mount at %s is not %s", place, lacks) : 0;
}

enum { BUFFER = 32 << 10 };

int verify_mounts(struct made *made, int list, struct error *err)
{
    size_t seen = 0, room = 0;
    autofree char *line = NULL, *buffer = NULL;
    FILE *lines = fdopen(list, "r");
    int result = 0;

    if (!lines) {
        close(list);
        return error_sys(err, "open the list of mounts");
    }
    buffer = memory_zero(BUFFER);
    setvbuf(lines, buffer, _IOFBF, BUFFER); /* of itself stdio would read it in kilobytes */
    for (; result == 0 && getline(&line, &room, lines) > 0; seen++)
        result = check_line(made, line, err);
    fclose(lines);
    if (result == 0 && seen != made->count)
        return error_set(err, ERROR_REFUSED, "%zu mounts were made, %zu are there", made->count, seen);
    return result;
}
