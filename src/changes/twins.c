#include "changes/scan.h"

#include "base/own.h"
#include "changes/names.h"

#include <fcntl.h>
#include <string.h>

/* One name of the upper, by what is left of it when everything that can be overlooked is. */
struct key {
    char *folded;
    const struct entry *entry;
};

struct keys {
    struct key *items;
    size_t len, cap;
};

static int by_folded(const void *a, const void *b)
{
    return strcmp(((const struct key *)a)->folded, ((const struct key *)b)->folded);
}

static void flag_fresh(struct scan *scan, const struct key *key)
{
    if (key->entry->fresh && key->entry->change != NO_CHANGE)
        scan->out->items[key->entry->change].flags |= FLAG_TWIN;
}

/* Those of one folded name stand together. */
static void flag_among(struct scan *scan, const struct keys *keys)
{
    for (size_t i = 1; i < keys->len; i++)
        if (by_folded(&keys->items[i - 1], &keys->items[i]) == 0) {
            flag_fresh(scan, &keys->items[i - 1]);
            flag_fresh(scan, &keys->items[i]);
        }
}

static void flag_by(struct scan *scan, const struct keys *keys, const char *name)
{
    struct key key = { .folded = name_fold(name) };
    const struct key *found = bsearch(&key, keys->items, keys->len, sizeof key, by_folded), *at = found;

    for (; at && at >= keys->items && by_folded(at, &key) == 0; at--)
        flag_fresh(scan, at);
    for (at = found; at && at < keys->items + keys->len && by_folded(at, &key) == 0; at++)
        flag_fresh(scan, at);
    free(key.folded);
}

static void spell(struct text *out, const char *folded, size_t upper)
{
    text_clear(out);
    for (size_t i = 0; folded[i]; i++) {
        bool small = folded[i] >= 'a' && folded[i] <= 'z';
        char letter = (char)(i < upper && small ? folded[i] - 'a' + 'A' : folded[i]);

        text_add_bytes(out, &letter, 1);
    }
}

/* In a directory that is too big to read, the usual spellings are tried: makefile, Makefile, MAKEFILE,
 * README.md. */
static void flag_by_spelling(struct scan *scan, int base, const struct entries *entries, const struct key *key)
{
    const char *dot = strrchr(key->folded, '.');
    size_t len = strlen(key->folded), uppers[] = { 0, 1, len, dot ? (size_t)(dot - key->folded) : 0 };
    autotext struct text name = TEXT_NONE;

    for (size_t i = 0; *key->folded && key->entry->fresh && i < ARRAY_LEN(uppers); i++) {
        struct stat ignored;

        spell(&name, key->folded, uppers[i]);
        scan->out->looked_at++;
        if (!entries_find(entries, name.data) &&
            fstatat(base, name.data, &ignored, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) == 0)
            flag_fresh(scan, key);
    }
}

/* To read all of a big directory for one new name would cost the tree and not the changes. */
static void flag_beside_base(struct scan *scan, int base, const struct entries *entries,
                             const struct keys *keys)
{
    autoentries struct entries names = { 0 };
    bool cut = false;

    if (scan_list(base, TWIN_NAMES_MAX, &cut, &names) < 0)
        cut = true;
    scan->out->looked_at += names.len;
    for (size_t i = 0; i < names.len; i++)
        if (!entries_find(entries, names.items[i].name)) /* else it is gone, or was looked at above */
            flag_by(scan, keys, names.items[i].name);
    for (size_t i = 0; cut && i < keys->len; i++)
        flag_by_spelling(scan, base, entries, &keys->items[i]);
    scan->out->twins_unsure |= cut;
}

void twins_flag(struct scan *scan, const struct job *job, int base, const struct entries *entries)
{
    struct keys keys = { 0 };
    bool any = false;

    for (size_t i = 0; i < entries->len && !any; i++)
        any = entries->items[i].fresh && entries->items[i].change != NO_CHANGE;
    for (size_t i = 0; any && i < entries->len; i++)
        if (!entries->items[i].whiteout)
            *array_add(&keys) =
                (struct key){ .folded = name_fold(entries->items[i].name), .entry = &entries->items[i] };
    if (keys.len) {
        qsort(keys.items, keys.len, sizeof *keys.items, by_folded);
        flag_among(scan, &keys);
        if (!job->opaque && base >= 0)
            flag_beside_base(scan, base, entries, &keys);
    }
    for (size_t i = 0; i < keys.len; i++)
        free(keys.items[i].folded);
    free(keys.items);
}
