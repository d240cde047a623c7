/* Reads the mounts back before a command runs.  What counts is the kernel's own list: each mount
 * that was made must be in it with its flags, and nothing else may be. */

#include "box/execute.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/own.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>

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

/* "36 35 98:0 /root /place options ...": the words of a line, split in place. */
static bool split_line(char *line, uint64_t *id, char **place, char **options)
{
    char *rest;
    char *words[6] = { strtok_r(line, " ", &rest) };

    for (size_t i = 1; i < ARRAY_LEN(words) && words[i - 1]; i++)
        words[i] = strtok_r(NULL, " ", &rest);
    *id = words[0] ? strtoull(words[0], NULL, 10) : 0;
    *place = words[4];
    *options = words[5];
    return *id && *options;
}

static int check_line(const struct executor *x, char *line, size_t *seen, struct error *err)
{
    char *place, *options;
    uint64_t id;

    if (!split_line(line, &id, &place, &options))
        return error_set(err, ERROR_SYSTEM, "a line of mountinfo cannot be read");
    for (size_t i = 0; i < x->mount_count; i += 2) {
        if (x->mounts[i] != id)
            continue;
        for (size_t f = 0; f < ARRAY_LEN(flag_names); f++)
            if ((x->mounts[i + 1] & flag_names[f].flag) && !has_option(options, flag_names[f].name))
                return error_set(err, ERROR_REFUSED, "the mount at %s is not %s", place, flag_names[f].name);
        (*seen)++;
        return 0;
    }
    return error_set(err, ERROR_REFUSED, "there is a mount at %s that is not in the plan", place);
}

enum { BUFFER = 32 << 10 };

int verify_mounts(const struct executor *x, struct error *err)
{
    FILE *lines = fopen("/proc/self/mountinfo", "re");
    autofree char *line = NULL, *buffer = NULL;
    size_t room = 0;
    size_t seen = 0;
    int result = 0;

    if (!lines)
        return error_sys(err, "open /proc/self/mountinfo");
    buffer = memory_zero(BUFFER);
    setvbuf(lines, buffer, _IOFBF, BUFFER); /* of itself stdio would read it in kilobytes */
    while (result == 0 && getline(&line, &room, lines) > 0)
        result = check_line(x, line, &seen, err);
    fclose(lines);
    if (result == 0 && seen != x->mount_count / 2)
        return error_set(err, ERROR_REFUSED, "%zu mounts were made, %zu are there", x->mount_count / 2, seen);
    return result;
}
