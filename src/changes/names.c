#include "changes/names.h"

#include "base/array.h"
#include "base/text.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

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

enum script { SCRIPT_OTHER, SCRIPT_LATIN, SCRIPT_CYRILLIC, SCRIPT_GREEK };

static enum script script_of(uint32_t code)
{
    static const struct range latin_letters[] = { { 'A', 'Z' },   { 'a', 'z' },    { 0xc0, 0xd6 },
                                                  { 0xd8, 0xf6 }, { 0xf8, 0x24f }, { 0x1e00, 0x1eff } };
    static const struct range cyrillic[] = { { 0x400, 0x52f }, { 0x1c80, 0x1c8f }, { 0x2de0, 0x2dff } };
    static const struct range greek[] = { { 0x370, 0x3ff }, { 0x1f00, 0x1fff } };

    if (within(code, latin_letters, ARRAY_LEN(latin_letters)))
        return SCRIPT_LATIN;
    if (within(code, cyrillic, ARRAY_LEN(cyrillic)))
        return SCRIPT_CYRILLIC;
    return within(code, greek, ARRAY_LEN(greek)) ? SCRIPT_GREEK : SCRIPT_OTHER;
}

bool name_mixes_scripts(const char *text, size_t len, bool greek)
{
    unsigned seen = 0;

    for (const char *end = text + len; text < end;) {
        size_t step = text_utf8_length(text);
        enum script script = step ? script_of(text_utf8_code(text, step)) : SCRIPT_OTHER;

        seen |= 1u << script;
        text += step ? step : 1;
    }
    return seen >> SCRIPT_LATIN & 1 && (seen >> SCRIPT_CYRILLIC & 1 || (greek && seen >> SCRIPT_GREEK & 1));
}

bool name_is_odd(const char *name)
{
    static const struct range controls[] = {
        { 0x00, 0x1f },     { 0x7f, 0x9f },     { 0xad, 0xad },     { 0x61c, 0x61c },
        { 0x200b, 0x200f }, { 0x2028, 0x202e }, { 0x2060, 0x206f }, { 0xfeff, 0xfeff },
    };

    if (*name == '-' || text_ends(name, " ") || name_mixes_scripts(name, strlen(name), true))
        return true;
    for (size_t len; *name; name += len) {
        len = text_utf8_length(name);
        if (!len || within(text_utf8_code(name, len), controls, ARRAY_LEN(controls)))
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

/* Letters of another script that look like a Latin one, as small or as capital ones. */
static const struct {
    uint16_t from;
    char to;
} alike[] = {
    { 0x430, 'a' }, { 0x432, 'b' }, { 0x435, 'e' }, { 0x43a, 'k' }, { 0x43c, 'm' }, { 0x43d, 'h' },
    { 0x43e, 'o' }, { 0x440, 'p' }, { 0x441, 'c' }, { 0x442, 't' }, { 0x443, 'y' }, { 0x445, 'x' },
    { 0x455, 's' }, { 0x456, 'i' }, { 0x458, 'j' }, { 0x4bb, 'h' }, { 0x501, 'd' }, { 0x51b, 'q' },
    { 0x51d, 'w' }, { 0x3b1, 'a' }, { 0x3b2, 'b' }, { 0x3b5, 'e' }, { 0x3b6, 'z' }, { 0x3b7, 'h' },
    { 0x3b9, 'i' }, { 0x3ba, 'k' }, { 0x3bc, 'm' }, { 0x3bd, 'v' }, { 0x3bf, 'o' }, { 0x3c1, 'p' },
    { 0x3c4, 't' }, { 0x3c5, 'u' }, { 0x3c7, 'x' }, { 0xb5, 'm' },  { 0x131, 'i' },
};

static uint32_t as_latin(uint32_t code)
{
    for (size_t i = 0; code >= 0x80 && i < ARRAY_LEN(alike); i++)
        if (alike[i].from == code)
            return (unsigned char)alike[i].to;
    return code;
}

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

/* Most names are plain, and every name of a directory is folded for one new one in it. */
static char *fold_plain(const char *name)
{
    char *folded = text_copy(name);

    for (char *at = folded; *at; at++) {
        if (*at & 0x80) {
            free(folded);
            return NULL;
        }
        *at = text_small(*at);
    }
    return folded;
}

char *name_fold(const char *name)
{
    struct text folded = TEXT_NONE;
    char *plain = fold_plain(name);

    if (plain)
        return plain;

    while (*name) {
        size_t len = text_utf8_length(name);
        uint32_t code = len ? text_utf8_code(name, len) : 0;

        if (!len) /* as itself it could make a character with what comes to stand beside it */
            text_add(&folded, "?");
        else if (!within(code, passed_over, ARRAY_LEN(passed_over)))
            add_code(&folded, as_latin(without_case(code)));
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

/* True if `path` never rises above where it starts, `depth` components below the workspace.  Behind a
 * name, `..` leads anywhere: that name may be a link, if not now then after the next change. */
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
