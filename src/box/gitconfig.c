#include "box/gitconfig.h"

#include "base/text.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *skip_blank(const char *at)
{
    return at + strspn(at, " \t\r");
}

/* Whether the name of `len` bytes is `want`; git does not mind the case. */
static bool is_named(const char *name, size_t len, const char *want)
{
    return strlen(want) == len && strncasecmp(name, want, len) == 0;
}

/* Behind the backslash: what it stands for, 0 if git does not know it. */
static char unescape(char letter)
{
    static const char known[] = "\"\\ntb", meant[] = "\"\\\n\t\b";
    const char *found = letter ? strchr(known, letter) : NULL;

    if (!found)
        return '\0';
    return meant[found - known];
}

/* Reads a value up to the end of its line; *at is then there.  False if it is malformed. */
static bool read_value(const char **at, struct text *out)
{
    bool quoted = false;
    size_t solid = 0; /* length up to the last byte that is no blank to be cut off */

    text_clear(out);
    text_add(out, "");
    for (; **at && **at != '\n'; (*at)++) {
        char byte = **at;

        if (byte == '"') {
            quoted = !quoted;
            continue;
        }
        if (!quoted && (byte == '#' || byte == ';')) {
            *at += strcspn(*at, "\n");
            break;
        }
        bool escaped = byte == '\\';
        if (escaped && (*at)[1] == '\n') { /* the value goes on in the next line */
            (*at)++;
            continue;
        }
        if (escaped && !(byte = unescape(*++*at)))
            return false;
        text_add_bytes(out, &byte, 1);
        if (quoted || escaped || !strchr(" \t\r", byte))
            solid = out->len;
    }
    text_cut(out, solid);
    return !quoted;
}

/* [section] or [section "sub"]; only the plain form can be the wanted one.  NULL if malformed. */
static const char *read_header(const char *at, const char *section, bool *inside)
{
    size_t len = strcspn(at, "]\n\" \t");

    *inside = at[len] == ']' && is_named(at, len, section);
    at += strcspn(at, "\n]");
    return *at == ']' ? at + 1 : NULL;
}

char *gitconfig_value(const char *config, const char *section, const char *key)
{
    struct text value = TEXT_NONE;
    char *found = NULL;
    bool inside = false;

    for (const char *at = config; at && *at;) {
        at = skip_blank(at);
        if (*at == '\n') {
            at++;
        } else if (*at == '[') {
            at = read_header(at + 1, section, &inside);
        } else if (*at == '#' || *at == ';') {
            at += strcspn(at, "\n");
        } else if (*at) {
            size_t len = strcspn(at, " \t\r\n=#;");
            bool wanted = inside && is_named(at, len, key);
            const char *equals = skip_blank(at + len);

            text_clear(&value);
            at = *equals == '=' ? skip_blank(equals + 1) : at + strcspn(at, "\n");
            if (!read_value(&at, &value))
                break;
            if (wanted) {
                free(found);
                found = text_copy(text_string(&value));
            }
        }
    }
    text_free(&value);
    return found;
}
