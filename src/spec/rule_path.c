#include "spec/rule_path.h"

#include "base/glob.h"
#include "base/own.h"
#include "base/text.h"

#include <string.h>

static bool is_unreserved(char byte)
{
    return (byte >= '0' && byte <= '9') || ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'z') || byte == '-' ||
           byte == '_' || byte == '~' || byte == '.';
}

static int hex_value(char byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    byte |= 0x20;
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

/* %41 becomes A; what an escape could hide from a rule is refused. */
static bool add_escaped(const char *at, struct text *out)
{
    int high = hex_value(at[1]), low = high < 0 ? -1 : hex_value(at[2]), code = high * 16 + low;

    if (low < 0 || code < 0x20 || code >= 0x7f || strchr("./\\%;", code))
        return false;
    if (is_unreserved((char)code))
        text_addf(out, "%c", code);
    else
        text_addf(out, "%%%02X", (unsigned)code);
    return true;
}

static bool add_part(const char *at, size_t len, struct text *out)
{
    if ((len == 1 && at[0] == '.') || (len == 2 && at[0] == '.' && at[1] == '.'))
        return false;
    for (size_t i = 0; i < len; i++) {
        if (at[i] == '%') {
            if (!add_escaped(at + i, out))
                return false;
            i += 2;
        } else if (at[i] <= 0x20 || at[i] == 0x7f || strchr("\\;#", at[i])) {
            return false;
        } else {
            text_add_bytes(out, at + i, 1);
        }
    }
    return true;
}

bool path_plain(const char *raw, struct text *out)
{
    size_t len = strcspn(raw, "?");

    if (raw[0] != '/')
        return false;
    for (size_t at = 0; at < len;) {
        size_t part = strcspn(raw + at + 1, "/?");
        bool last = at + 1 + part == len;

        if (part == 0 && !last)
            return false;
        text_add(out, "/");
        if (!add_part(raw + at + 1, part, out))
            return false;
        at += 1 + part;
    }
    return true;
}

bool path_is_pattern(const char *pattern)
{
    autotext struct text plain = TEXT_NONE;

    return !strchr(pattern, '?') && path_plain(pattern, &plain) && strcmp(text_string(&plain), pattern) == 0;
}

/* Everything below a directory, its own name with a slash behind it included. */
static bool matches_below(const char *pattern, const char *plain)
{
    autofree char *directory = text_format("%.*s", (int)(strlen(pattern) - strlen("/**")), pattern);
    enum glob_place place = *directory ? glob_compare(directory, plain) : GLOB_BELOW;

    return place == GLOB_BELOW || (place == GLOB_YES && text_ends(plain, "/"));
}

bool path_matches(const char *pattern, const char *plain)
{
    if (text_ends(pattern, "/**"))
        return matches_below(pattern, plain);
    return glob_compare(pattern, plain) == GLOB_YES && text_ends(pattern, "/") == text_ends(plain, "/");
}

static char *without_forms(const char *path)
{
    char *plain = text_copy(path);
    size_t len = strlen(plain);

    for (size_t i = 0; i < len; i++)
        plain[i] = text_small(plain[i]);
    if (len > 1 && plain[len - 1] == '/')
        plain[len - 1] = '\0';
    return plain;
}

bool path_may_match(const char *pattern, const char *plain)
{
    autofree char *pattern_less = without_forms(pattern), *plain_less = without_forms(plain);

    return path_matches(pattern, plain) || path_matches(pattern_less, plain_less);
}

/* A pattern without stars is a path.  Below a directory lies what begins with the same words, whatever they
 * match. */
bool path_pattern_within(const char *inner, const char *outer)
{
    size_t len = strlen(outer) - (text_ends(outer, "/**") ? strlen("/**") : 0);

    if (strcmp(inner, outer) == 0)
        return true;
    if (text_ends(outer, "/**") && strncmp(inner, outer, len) == 0 && inner[len] == '/')
        return true;
    return !strpbrk(inner, "*?[") && path_matches(outer, inner);
}
