#include "base/glob.h"

#include <stddef.h>
#include <string.h>

/* A part of a string that somebody else keeps. */
struct part {
    const char *at, *end;
};

static struct part whole(const char *string)
{
    return (struct part){ string, string + strlen(string) };
}

/* Whether the byte is in the set that begins behind '['; *after is then behind the ']'.  A '['
 * that is never closed stands for itself, as in the shell. */
static bool in_set(struct part set, unsigned char byte, const char **after)
{
    const char *at = set.at;
    bool inverted = at < set.end && (*at == '!' || *at == '^'), found = false;

    at += inverted;
    for (const char *first = at; at < set.end && (*at != ']' || at == first); at++) {
        unsigned char low = (unsigned char)*at, high = low;

        if (at + 2 < set.end && at[1] == '-' && at[2] != ']') {
            high = (unsigned char)at[2];
            at += 2;
        }
        found = found || (byte >= low && byte <= high);
    }
    *after = at < set.end ? at + 1 : NULL;
    return found != inverted;
}

/* Whether the one element at pattern->at (not a '*') takes the byte; moves behind it. */
static bool takes(struct part *pattern, char byte)
{
    const char *after = NULL;
    char element = *pattern->at++;

    if (element == '?')
        return true;
    if (element == '[') {
        bool in = in_set(*pattern, (unsigned char)byte, &after);

        if (after) {
            pattern->at = after;
            return in;
        }
    }
    if (element == '\\' && pattern->at < pattern->end)
        element = *pattern->at++;
    return element == byte;
}

/* Only the last star seen is ever widened: that is enough for a match, and it bounds the work by
 * the product of both lengths whatever a pattern looks like. */
static bool match_part(struct part pattern, struct part name)
{
    struct part star = { NULL, NULL };
    const char *resume = name.at;

    while (name.at < name.end) {
        if (pattern.at < pattern.end && *pattern.at == '*') {
            pattern.at++;
            star = pattern;
            resume = name.at;
            continue;
        }
        if (pattern.at < pattern.end && takes(&pattern, *name.at)) {
            name.at++;
            continue;
        }
        if (!star.at)
            return false;
        pattern = star;
        name.at = ++resume;
    }
    while (pattern.at < pattern.end && *pattern.at == '*')
        pattern.at++;
    return pattern.at == pattern.end;
}

bool glob_match(const char *pattern, const char *name)
{
    return match_part(whole(pattern), whole(name));
}

bool glob_match_part(const char *pattern, size_t pattern_len, const char *name, size_t name_len)
{
    return match_part((struct part){ pattern, pattern + pattern_len }, (struct part){ name, name + name_len });
}

/* Takes the first component off; false if there is none. */
static bool next_component(const char **rest, struct part *out)
{
    while (**rest == '/')
        (*rest)++;
    out->at = *rest;
    *rest += strcspn(*rest, "/");
    out->end = *rest;
    return out->at < out->end;
}

static bool is_any_depth(struct part component)
{
    return component.end - component.at == 2 && memcmp(component.at, "**", 2) == 0;
}

/* As in match_part(), only the last `**` is ever widened. */
enum glob_place glob_compare(const char *pattern, const char *path)
{
    const char *star = NULL, *resume = NULL;
    struct part want, have;

    while (next_component(&pattern, &want)) {
        if (is_any_depth(want)) {
            star = pattern;
            resume = path;
            continue;
        }
        if (!next_component(&path, &have))
            return GLOB_ABOVE;
        if (match_part(want, have))
            continue;
        if (!star)
            return GLOB_NO;
        (void)next_component(&resume, &have);
        pattern = star;
        path = resume;
    }
    return next_component(&path, &have) ? GLOB_BELOW : GLOB_YES;
}
