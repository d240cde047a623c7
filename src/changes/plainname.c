#include "changes/plainname.h"

#include "base/array.h"
#include "base/glob.h"
#include "base/text.h"

#include <stdint.h>
#include <string.h>

/* Some bytes that somebody else keeps. */
struct span {
    const char *at;
    size_t len;
};

/* Characters that a screen does not show and that HFS+ leaves out when it compares; the whole of
 * Unicode's property Default_Ignorable_Code_Point, since a longer list costs nothing. */
static const struct range {
    uint32_t first, last;
} ignorable[] = {
    { 0xad, 0xad },       { 0x34f, 0x34f },     { 0x61c, 0x61c },   { 0x115f, 0x1160 }, { 0x17b4, 0x17b5 },
    { 0x180b, 0x180f },   { 0x200b, 0x200f },   { 0x202a, 0x202e }, { 0x2060, 0x206f }, { 0x3164, 0x3164 },
    { 0xfe00, 0xfe0f },   { 0xfeff, 0xfeff },   { 0xffa0, 0xffa0 }, { 0xfff0, 0xfff8 }, { 0x1bca0, 0x1bca3 },
    { 0x1d173, 0x1d17a }, { 0xe0000, 0xe0fff },
};

static bool is_ignorable(uint32_t code)
{
    for (size_t i = 0; i < ARRAY_LEN(ignorable) && code >= ignorable[i].first; i++)
        if (code <= ignorable[i].last)
            return true;
    return false;
}

/* The character at the start of `from` and its length.  A byte that starts none stands for
 * itself, as a code that is no character. */
static uint32_t character(struct span from, size_t *len)
{
    static const unsigned char leads[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
    unsigned char first = (unsigned char)*from.at;
    size_t want = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
    uint32_t code = (uint32_t)first - leads[want];

    *len = 1;
    if (want == 1)
        return first < 0x80 ? first : UINT32_MAX;
    if (want > from.len)
        return UINT32_MAX;
    for (size_t i = 1; i < want; i++) {
        unsigned char next = (unsigned char)from.at[i];

        if ((next & 0xc0) != 0x80)
            return UINT32_MAX;
        code = code << 6 | (next & 0x3f);
    }
    *len = want;
    return code;
}

/* All other letters that become ASCII where case does not count, as on APFS and on directories of ext4
 * that fold it: sharp s, long s, the sign for Kelvin, ligatures.  None takes more bytes than it had. */
static const struct {
    uint32_t code;
    char ascii[4];
} folding[] = {
    { 0xdf, "ss" },    { 0x17f, "s" },   { 0x1e9e, "ss" }, { 0x212a, "k" },
    { 0xfb00, "ff" },  { 0xfb01, "fi" }, { 0xfb02, "fl" }, { 0xfb03, "ffi" },
    { 0xfb04, "ffl" }, { 0xfb05, "st" }, { 0xfb06, "st" },
};

/* NULL: it stays what it is. */
static const char *folded_to_ascii(uint32_t code)
{
    for (size_t i = 0; i < ARRAY_LEN(folding) && code >= folding[i].code; i++)
        if (code == folding[i].code)
            return folding[i].ascii;
    return NULL;
}

/* Writes a component in its plain form, which is never longer than it was.  What follows a colon
 * names a stream of the same file on NTFS. */
static size_t fold(struct span component, char *out)
{
    size_t used = 0, len;

    for (size_t at = 0; at < component.len; at += len) {
        uint32_t code = character((struct span){ component.at + at, component.len - at }, &len);

        if (code == ':' && used)
            break;
        if (is_ignorable(code))
            continue;
        const char *ascii = folded_to_ascii(code);

        if (ascii) {
            while (*ascii)
                out[used++] = *ascii++;
            continue;
        }
        for (size_t i = 0; i < len; i++)
            out[used++] = text_small(component.at[at + i]);
    }

    size_t kept = used;

    while (kept && (out[kept - 1] == '.' || out[kept - 1] == ' '))
        kept--;
    return kept ? kept : used; /* a name of nothing but dots is no other name */
}

static bool is_dots(struct span component, size_t count)
{
    return component.len == count && memcmp(component.at, "..", count) == 0;
}

static void drop_last(struct plainname *name)
{
    while (name->len && name->text[name->len - 1] != '/')
        name->len--;
    name->len -= name->len != 0;
}

static bool add_component(struct plainname *name, struct span component)
{
    if (!component.len || is_dots(component, 1))
        return true;
    if (is_dots(component, 2)) {
        drop_last(name);
        return true;
    }
    if (component.len + 2 > sizeof name->text - name->len)
        return false;

    size_t before = name->len;

    if (before)
        name->text[name->len++] = '/';

    size_t len = fold(component, name->text + name->len);

    name->len = len ? name->len + len : before;
    return true;
}

void plainname_clear(struct plainname *name)
{
    name->text[0] = '\0';
    name->len = name->last = 0;
    name->has_short = false;
}

bool plainname_add(struct plainname *name, const char *path, size_t len)
{
    const char *end = path + len;

    if (memchr(path, '\0', len))
        return false;
    while (path < end) {
        const char *next = path;

        while (next < end && *next != '/' && *next != '\\')
            next++;
        if (!add_component(name, (struct span){ path, (size_t)(next - path) }))
            return false;
        path = next + (next < end);
    }
    name->text[name->len] = '\0';
    name->has_short = memchr(name->text, '~', name->len) != NULL;

    const char *slash = memrchr(name->text, '/', name->len);

    name->last = slash ? (size_t)(slash + 1 - name->text) : 0;
    return true;
}

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

/* The short names that Windows makes: at most six characters, a tilde, a number, and at most three
 * characters of the extension. */
static bool split_short(struct span name, struct span *base, struct span *extension)
{
    const char *tilde = memchr(name.at, '~', name.len), *end = name.at + name.len;

    if (!tilde || tilde == name.at || tilde - name.at > 6)
        return false;
    *base = (struct span){ name.at, (size_t)(tilde - name.at) };

    const char *at = tilde + 1;

    while (at < end && is_digit(*at))
        at++;
    if (at == tilde + 1 || (at < end && *at != '.'))
        return false;
    at += at < end;
    *extension = (struct span){ at, (size_t)(end - at) };
    return extension->len <= 3;
}

static bool is_hex(struct span text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!is_digit(text.at[i]) && (text.at[i] < 'a' || text.at[i] > 'f'))
            return false;
    return true;
}

static bool is_start(struct span start, struct span whole, size_t most)
{
    size_t want = whole.len < most ? whole.len : most;

    return start.len == want && memcmp(start.at, whole.at, want) == 0;
}

/* Whether the name in the tree is a short form of the wanted one.  From the fifth that begins
 * alike, Windows takes two characters and four digits of a hash. */
static bool abbreviates(struct span have, struct span want)
{
    struct span base, extension, long_extension = { "", 0 };

    if (!split_short(have, &base, &extension))
        return false;
    while (want.len && *want.at == '.')
        want = (struct span){ want.at + 1, want.len - 1 };

    const char *dot = memrchr(want.at, '.', want.len);

    if (dot) {
        long_extension = (struct span){ dot + 1, (size_t)(want.at + want.len - dot - 1) };
        want.len = (size_t)(dot - want.at);
    }
    if (!is_start(extension, long_extension, 3))
        return false;
    if (is_start(base, want, 6))
        return true;
    return base.len == 6 && want.len >= 2 && memcmp(base.at, want.at, 2) == 0 &&
           is_hex((struct span){ base.at + 2, 4 });
}

/* Whether this character of a pattern says that a name has another one at this place.  The first
 * and the last one tell most names apart, and there are hundreds of patterns for each name. */
static bool tells_apart(char want, char have)
{
    return want != have && want != '*' && want != '?' && want != '[' && want != ']';
}

static bool component_matches(struct span want, struct span have)
{
    if (memchr(have.at, '~', have.len) && abbreviates(have, want))
        return true;
    return !tells_apart(want.at[0], have.at[0]) && !tells_apart(want.at[want.len - 1], have.at[have.len - 1]) &&
           glob_match_part(want.at, want.len, have.at, have.len);
}

static struct span first_component(const char *path)
{
    return (struct span){ path, (size_t)(strchrnul(path, '/') - path) };
}

static enum plainname_place compare_from(const char *pattern, const char *path)
{
    while (*pattern) {
        struct span want = first_component(pattern), have = first_component(path);

        if (!have.len)
            return PLAINNAME_ABOVE;
        if (!component_matches(want, have))
            return PLAINNAME_NO;
        pattern += want.len;
        path += have.len + (path[have.len] == '/');
        if (pattern[0] == '/' && !pattern[1])
            return *path ? PLAINNAME_YES : PLAINNAME_ABOVE;
        pattern += *pattern == '/';
    }
    return *path ? PLAINNAME_NO : PLAINNAME_YES;
}

enum plainname_place plainname_compare(const char *pattern, const struct plainname *name)
{
    enum plainname_place best = PLAINNAME_NO;
    const char *from = name->text;

    if (!name->len)
        return PLAINNAME_NO;
    if (!strchr(pattern, '/')) /* it can only be the last component */
        from += name->last;
    for (; from && best != PLAINNAME_YES; from = strchr(from, '/')) {
        from += *from == '/';
        if (tells_apart(*pattern, *from) && !name->has_short)
            continue;

        enum plainname_place place = compare_from(pattern, from);

        best = place > best ? place : best;
    }
    return best;
}
