#include "changes/names.h"

#include "base/array.h"
#include "base/text.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The character at `at`, which is `len` bytes of well-formed UTF-8. */
static uint32_t code_at(const char *at, size_t len)
{
    uint32_t first = (unsigned char)at[0], code = len == 1 ? first : first & (0xffu >> (len + 1));

    for (size_t i = 1; i < len; i++)
        code = code << 6 | ((unsigned char)at[i] & 0x3f);
    return code;
}

struct range {
    uint32_t first, last;
};

static bool within(uint32_t code, const struct range *ranges, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (code >= ranges[i].first && code <= ranges[i].last)
            return true;
    return false;
}

bool name_is_odd(const char *name)
{
    static const struct range controls[] = {
        { 0x00, 0x1f }, { 0x7f, 0x9f }, { 0x200e, 0x200f }, { 0x2028, 0x202e }, { 0x2066, 0x2069 },
    };

    if (*name == '-' || text_ends(name, " "))
        return true;
    for (size_t len; *name; name += len) {
        len = text_utf8_length(name);
        if (!len || within(code_at(name, len), controls, ARRAY_LEN(controls)))
            return true;
    }
    return false;
}

/* No width, or only an accent on what stands before it. */
static const struct range passed_over[] = {
    { 0xad, 0xad },     { 0x300, 0x36f },   { 0x483, 0x487 },   { 0x61c, 0x61c },     { 0x115f, 0x1160 },
    { 0x17b4, 0x17b5 }, { 0x180b, 0x180f }, { 0x1ab0, 0x1aff }, { 0x1dc0, 0x1dff },   { 0x200b, 0x200f },
    { 0x202a, 0x202e }, { 0x2060, 0x206f }, { 0x20d0, 0x20ff }, { 0x3164, 0x3164 },   { 0xfe00, 0xfe0f },
    { 0xfe20, 0xfe2f }, { 0xfeff, 0xfeff }, { 0xffa0, 0xffa0 }, { 0xe0000, 0xe0fff },
};

/* U+00C0 to U+017F without their accents, in small letters; ligatures as their first letter. */
static const char latin[] = "aaaaaaaceeeeiiii"
                            "dnooooo*ouuuuyts"
                            "aaaaaaaceeeeiiii"
                            "dnooooo/ouuuuyty"
                            "aaaaaaccccccccdd"
                            "ddeeeeeeeeeegggg"
                            "gggghhhhiiiiiiii"
                            "iiiijjkkklllllll"
                            "lllnnnnnnnnnoooo"
                            "oooorrrrrrssssss"
                            "ssttttttuuuuuuuu"
                            "uuuuwwyyyzzzzzzs";

/* Greek and Cyrillic letters with an accent, and the letter below it. */
static const struct {
    uint16_t from, to;
} accented[] = {
    { 0x386, 0x3b1 }, { 0x388, 0x3b5 }, { 0x389, 0x3b7 }, { 0x38a, 0x3b9 }, { 0x38c, 0x3bf }, { 0x38e, 0x3c5 },
    { 0x38f, 0x3c9 }, { 0x390, 0x3b9 }, { 0x3aa, 0x3b9 }, { 0x3ab, 0x3c5 }, { 0x3ac, 0x3b1 }, { 0x3ad, 0x3b5 },
    { 0x3ae, 0x3b7 }, { 0x3af, 0x3b9 }, { 0x3b0, 0x3c5 }, { 0x3c2, 0x3c3 }, { 0x3ca, 0x3b9 }, { 0x3cb, 0x3c5 },
    { 0x3cc, 0x3bf }, { 0x3cd, 0x3c5 }, { 0x3ce, 0x3c9 }, { 0x400, 0x435 }, { 0x401, 0x435 }, { 0x403, 0x433 },
    { 0x40c, 0x43a }, { 0x40d, 0x438 }, { 0x450, 0x435 }, { 0x453, 0x433 }, { 0x45c, 0x43a }, { 0x45d, 0x438 },
    { 0x3a2, 0x3c3 }, { 0x407, 0x456 }, { 0x419, 0x438 }, { 0x439, 0x438 }, { 0x451, 0x435 }, { 0x457, 0x456 },
    { 0x45e, 0x443 }, { 0x40e, 0x443 },
};

static uint32_t without_case(uint32_t code)
{
    if (code >= 'A' && code <= 'Z')
        return code + ('a' - 'A');
    if (code < 0x80)
        return code;
    if (code >= 0xff01 && code <= 0xff5e) /* full width */
        return without_case(code - 0xff01 + '!');
    if (code >= 0xc0 && code <= 0x17f)
        return (unsigned char)latin[code - 0xc0];
    if (code == 0x212a || code == 0x212b) /* the signs of Kelvin and of Angstrom are letters too */
        return code == 0x212a ? 'k' : 'a';
    for (size_t i = 0; i < ARRAY_LEN(accented); i++)
        if (accented[i].from == code)
            return accented[i].to;
    if ((code >= 0x391 && code <= 0x3a9) || (code >= 0x410 && code <= 0x42f))
        return code + 0x20;
    if (code >= 0x400 && code <= 0x40f)
        return code + 0x50;
    return code;
}

static void add_code(struct text *text, uint32_t code)
{
    char bytes[4] = { (char)code };
    size_t len = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

    for (size_t i = len; len > 1 && i-- > 1; code >>= 6)
        bytes[i] = (char)(0x80 | (code & 0x3f));
    if (len > 1)
        bytes[0] = (char)((0xf00u >> len) | code);
    text_add_bytes(text, bytes, len);
}

char *name_fold(const char *name)
{
    struct text folded = TEXT_NONE;

    while (*name) {
        size_t len = text_utf8_length(name);
        uint32_t code = len ? code_at(name, len) : 0;

        if (!len) /* as itself it could make a character with what comes to stand beside it */
            text_add(&folded, "?");
        else if (!within(code, passed_over, ARRAY_LEN(passed_over)))
            add_code(&folded, without_case(code));
        name += len ? len : 1;
    }
    return text_steal(&folded);
}

/* Takes the next component off *path; its length, 0 at the end. */
static size_t component(const char **path, const char **out)
{
    *path += strspn(*path, "/");
    *out = *path;
    size_t len = strcspn(*path, "/");
    *path += len;
    return len;
}

static bool is_dots(const char *name, size_t len, size_t dots)
{
    return len == dots && strspn(name, ".") >= dots;
}

/* True if `path` never rises above where it starts, `depth` components below the workspace.  Behind a name
 * that may be a link itself nobody knows where `..` leads: two links that stay inside by their text would
 * together lead out. */
static bool stays(const char *path, size_t depth)
{
    const char *name = NULL;
    bool named = false;

    for (size_t len; (len = component(&path, &name));) {
        if (is_dots(name, len, 1))
            continue;
        if (!is_dots(name, len, 2))
            named = true;
        else if (named || depth-- == 0)
            return false;
    }
    return true;
}

/* What is left of `path` behind the components of `tree`; NULL if it does not begin with them. */
static const char *behind(const char *path, const char *tree)
{
    const char *want = NULL, *have = NULL;

    for (size_t len; (len = component(&tree, &want));) {
        size_t found = component(&path, &have);

        while (is_dots(have, found, 1))
            found = component(&path, &have);
        if (found != len || memcmp(have, want, len) != 0)
            return NULL;
    }
    return path;
}

enum link_place link_judge(const char *path, const char *target, const char *inside)
{
    const char *name = NULL, *rest = NULL;
    size_t depth = 0;

    if (*target == '/') {
        rest = behind(target, inside);
        return rest && stays(rest, 0) ? LINK_ABSOLUTE : LINK_OUT;
    }
    while (component(&path, &name))
        depth++;
    return stays(target, depth ? depth - 1 : 0) ? LINK_INSIDE : LINK_OUT;
}
