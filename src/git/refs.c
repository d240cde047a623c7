#include "git/refs.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "git/merged.h"

#include <stdlib.h>
#include <string.h>

enum {
    LOOSE_MAX = 256,         /* bytes of a loose reference */
    PACKED_MAX = 64 << 20,   /* bytes of packed-refs */
    REFS_MAX = 200000,       /* of one repository */
    NAMES_MAX = REFS_MAX,    /* in one directory */
    DEPTH_MAX = 32,          /* of refs/a/b/c */
    COMPONENT_MAX = 255 - 5, /* with ".lock" it is still a file name */
};

void refs_free(struct refs *refs)
{
    for (size_t i = 0; i < refs->len; i++)
        free(refs->items[i].name);
    free(refs->items);
    *refs = REFS_NONE;
}

/* --- names ---------------------------------------------------------------------------------- */

/* One part between slashes, as git-check-ref-format(1) has it. */
static bool is_component(const char *part, size_t len)
{
    if (len == 0 || len > COMPONENT_MAX || part[0] == '.' || part[len - 1] == '.')
        return false;
    if (len >= 5 && memcmp(part + len - 5, ".lock", 5) == 0)
        return false;
    for (size_t i = 0; i < len; i++) {
        unsigned char byte = (unsigned char)part[i], next = i + 1 < len ? (unsigned char)part[i + 1] : 0;

        if (byte <= ' ' || byte == 0x7f || strchr("~^:?*[\\", byte) || (byte == '.' && next == '.') ||
            (byte == '@' && next == '{'))
            return false;
    }
    return true;
}

bool ref_is_name(const char *name)
{
    if (strlen(name) > REF_NAME_MAX || !text_starts(name, "refs/"))
        return false;
    for (;;) {
        size_t len = strcspn(name, "/");

        if (!is_component(name, len))
            return false;
        if (!name[len])
            return true;
        name += len + 1;
    }
}

char *ref_plain_name(const char *branch)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+=@,/";
    struct text out = TEXT_NONE;

    for (; *branch; branch++)
        if (strchr(plain, *branch))
            text_add_bytes(&out, branch, 1);
        else
            text_addf(&out, "%%%02X", (unsigned)(unsigned char)*branch);
    return text_steal(&out);
}

/* --- bytes ---------------------------------------------------------------------------------- */

static bool take_hash(const char *bytes, size_t len, size_t digits, char out[HASH_MAX + 1])
{
    if (digits > HASH_MAX || len < digits || memchr(bytes, '\0', digits))
        return false;
    memcpy(out, bytes, digits);
    out[digits] = '\0';
    return strspn(out, "0123456789abcdef") == digits && strspn(out, "0") < digits;
}

bool ref_parse(const char *bytes, size_t len, size_t digits, char out[HASH_MAX + 1])
{
    if (!take_hash(bytes, len, digits, out))
        return false;
    for (size_t i = digits; i < len; i++)
        if (!strchr(" \t\r\n", bytes[i]) || !bytes[i])
            return false;
    return true;
}

static void add(struct refs *out, const char *name, const char *hash)
{
    struct ref *ref = array_add(out);

    ref->name = text_copy(name);
    memcpy(ref->hash, hash, HASH_MAX + 1);
}

static void parse_line(const char *line, size_t len, const char *top, size_t digits, struct refs *out)
{
    char hash[HASH_MAX + 1] = "";

    /* A comment, or what the tag above leads to. */
    if (len == 0 || line[0] == '#' || line[0] == '^')
        return;
    if (len < digits + 2 || line[digits] != ' ' || memchr(line, '\0', len) ||
        !take_hash(line, len, digits, hash)) {
        out->odd++;
        return;
    }

    autofree char *name = text_format("%.*s", (int)(len - digits - 1), line + digits + 1);

    if (!text_starts(name, top) || name[strlen(top)] != '/')
        return;
    if (ref_is_name(name) && out->len < REFS_MAX)
        add(out, name, hash);
    else
        out->odd++;
}

void refs_parse_packed(const char *bytes, size_t len, const char *top, size_t digits, struct refs *out)
{
    for (const char *end = bytes + len; bytes < end;) {
        const char *newline = memchr(bytes, '\n', (size_t)(end - bytes));
        const char *stop = newline ? newline : end;
        size_t size = (size_t)(stop - bytes);

        if (size > REF_NAME_MAX + HASH_MAX + 1)
            out->odd++;
        else
            parse_line(bytes, size, top, digits, out);
        bytes = stop + 1;
    }
}

/* --- files ---------------------------------------------------------------------------------- */

struct reading {
    size_t digits;
    struct refs *out;
};

static void read_loose(const struct reading *reading, const struct merged *dir, const char *entry,
                       const char *name)
{
    autofree char *bytes = NULL;
    char hash[HASH_MAX + 1];
    size_t len;
    enum merged_found found = merged_read(dir, entry, LOOSE_MAX, &bytes, &len);

    if (found == MERGED_ABSENT)
        return;
    if (found == MERGED_FILE && text_starts(bytes, "ref:"))
        return; /* another name for a branch that is read itself */
    if (found == MERGED_FILE && ref_is_name(name) && reading->out->len < REFS_MAX &&
        ref_parse(bytes, len, reading->digits, hash))
        add(reading->out, name, hash);
    else if (!text_ends(name, ".lock"))
        reading->out->odd++;
}

/* NOLINTNEXTLINE(misc-no-recursion): DEPTH_MAX deep */
static void walk_loose(const struct reading *reading, const struct merged *dir, const char *above,
                       unsigned depth)
{
    autostrings struct strings names = STRINGS_NONE;

    if (depth > DEPTH_MAX || !merged_list(dir, NAMES_MAX, &names)) {
        reading->out->odd++;
        return;
    }
    for (size_t i = 0; i < names.len; i++) {
        autofree char *name = text_format("%s/%s", above, names.items[i]);
        automerged struct merged below = MERGED_NONE;

        if (merged_enter(dir, names.items[i], &below))
            walk_loose(reading, &below, name, depth + 1);
        else
            read_loose(reading, dir, names.items[i], name);
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct ref *)a)->name, ((const struct ref *)b)->name);
}

static void sort(struct refs *refs)
{
    if (refs->len)
        qsort(refs->items, refs->len, sizeof *refs->items, by_name);
}

/* What is loose counts; what is packed of the same name is older. */
static void add_packed(struct refs *refs, struct refs *packed)
{
    size_t loose = refs->len;

    sort(packed);
    for (size_t i = 0; i < packed->len; i++) {
        const struct ref *ref = &packed->items[i];
        bool twice = i > 0 && strcmp(packed->items[i - 1].name, ref->name) == 0;

        if (!twice && !(loose && bsearch(ref, refs->items, loose, sizeof *refs->items, by_name)))
            add(refs, ref->name, ref->hash);
    }
    refs->odd += packed->odd;
    sort(refs);
}

int refs_read(const struct merged *common, const char *top, size_t digits, struct refs *out, struct error *err)
{
    automerged struct merged dir = MERGED_NONE;
    autorefs struct refs packed = REFS_NONE;
    autofree char *bytes = NULL;
    size_t len;

    if (merged_enter(common, top, &dir))
        walk_loose(&(struct reading){ digits, out }, &dir, top, 0);
    sort(out);
    switch (merged_read(common, "packed-refs", PACKED_MAX, &bytes, &len)) {
    case MERGED_FILE:
        refs_parse_packed(bytes, len, top, digits, &packed);
        break;
    case MERGED_LARGE:
        return error_set(err, ERROR_REFUSED, "its file packed-refs has more than %d MiB", PACKED_MAX >> 20);
    case MERGED_ODD:
        out->odd++;
        break;
    case MERGED_ABSENT:
        break;
    }
    add_packed(out, &packed);
    return 0;
}

const struct ref *refs_find(const struct refs *refs, const char *name)
{
    struct ref key;

    memset(&key, 0, sizeof key);
    key.name = (char *)(uintptr_t)name;
    return refs->len ? bsearch(&key, refs->items, refs->len, sizeof *refs->items, by_name) : NULL;
}

const struct ref *refs_in_way(const struct refs *refs, const char *name)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < refs->len; i++) {
        const char *other = refs->items[i].name;
        size_t size = strlen(other), less = size < len ? size : len;

        if (memcmp(other, name, less) == 0 &&
            (size == len || (size < len ? name[size] == '/' : other[len] == '/')))
            return &refs->items[i];
    }
    return NULL;
}
