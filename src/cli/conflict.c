#include "cli/conflict.h"

#include "base/linediff.h"
#include "base/text.h"
#include "changes/patch.h"
#include "cli/changed.h"
#include "cli/paint.h"

#include <stdio.h>
#include <sys/stat.h>

enum { LINES_MAX = 200 };

#define autobytes __attribute__((cleanup(patch_bytes_free)))

/* What the sandbox saw is still there. */
static bool is_known(const struct changed *changed, int tree, const struct change *change)
{
    struct stat base, there;

    if (change->flags & FLAG_BASE_CHANGED || fstat(changed->base, &base) < 0 || fstat(tree, &there) < 0)
        return false;
    return base.st_dev != there.st_dev || base.st_ino != there.st_ino;
}

static const char *bytes_of(const struct patch_bytes *bytes)
{
    return bytes->bytes ? bytes->bytes : "";
}

struct named {
    const char *name;
    const struct patch_bytes *bytes;
};

static void show(const char *path, struct named one, struct named other)
{
    autotext struct text patch = TEXT_NONE, hunks = TEXT_NONE;

    text_addf(&patch, "--- %s/%s%s\n+++ %s/%s%s\n", one.name, path, one.bytes->bytes ? "" : " (no file)",
              other.name, path, other.bytes->bytes ? "" : " (no file)");
    if ((one.bytes->bytes && one.bytes->binary) || (other.bytes->bytes && other.bytes->binary))
        text_addf(&hunks, "# binary: %zu bytes and %zu bytes\n", one.bytes->len, other.bytes->len);
    else
        linediff_hunks(bytes_of(one.bytes), one.bytes->len, bytes_of(other.bytes), other.bytes->len, &hunks);
    text_add_bytes(&patch, text_string(&hunks), hunks.len);
    paint_inert(stderr, &patch, LINES_MAX);
}

void conflict_show(const struct changed *changed, int tree, const struct change *change)
{
    struct patch_source source = { changed->upper, changed->base, true };
    autobytes struct patch_bytes before = { 0 }, sandbox = { 0 }, host = { 0 };
    autotext struct text shown = TEXT_NONE;
    bool known = is_known(changed, tree, change);

    patch_read(&source, change, &before, &sandbox);
    patch_read_file(tree, change->path, &host);
    text_add_inert(&shown, change->path);
    fprintf(stderr, "conflict: %s%s\n", text_string(&shown),
            known ? "" : " (what the sandbox began with is not known any more)");
    if (!known) {
        show(text_string(&shown), (struct named){ "host", &host }, (struct named){ "sandbox", &sandbox });
        return;
    }
    show(text_string(&shown), (struct named){ "before", &before }, (struct named){ "host", &host });
    show(text_string(&shown), (struct named){ "before", &before }, (struct named){ "sandbox", &sandbox });
}

void conflict_show_ways(const struct kept *kept)
{
    static const char *const ways[][2] = { { "host", "your file stays" },
                                           { "sandbox", "the sandbox's takes its place" },
                                           { "both", "yours stays, the sandbox's is put beside it" } };
    const struct record *record = &kept->record;

    fputs("Nothing was lost. To go on, for one PATH or several:\n", stderr);
    for (size_t i = 0; i < ARRAY_LEN(ways); i++)
        fprintf(stderr, "  cove apply --conflict %-7s %s PATH   %s\n", ways[i][0],
                record->name ? record->name : kept->id, ways[i][1]);
}
