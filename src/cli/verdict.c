#include "cli/verdict.h"

#include "changes/bare.h"
#include "changes/changes.h"
#include "changes/digest.h"
#include "changes/patch.h"

#include <string.h>
#include <sys/stat.h>

static mode_t kind_of(const struct side *side)
{
    static const mode_t kinds[] = { [SIDE_NONE] = 0,
                                    [SIDE_FILE] = S_IFREG,
                                    [SIDE_LINK] = S_IFLNK,
                                    [SIDE_DIRECTORY] = S_IFDIR,
                                    [SIDE_OTHER] = S_IFIFO };

    return side->type == SIDE_NONE ? 0 : kinds[side->type] | side->mode;
}

static struct classify_side side_of(const struct side *side, const struct patch_bytes *bytes)
{
    return (struct classify_side){ .mode = kind_of(side),
                                   .bytes = bytes->bytes,
                                   .len = bytes->len,
                                   .cut = side->type == SIDE_FILE && !bytes->bytes };
}

/* Files that are too large to be judged by what is in them are only hashed. */
static void digest_of(const struct patch_source *source, const struct change *change,
                      const struct patch_bytes *new, struct digest *out)
{
    struct changes one = { .items = (struct change *)(uintptr_t)change, .len = 1 };

    if (change->new.type == SIDE_FILE &&new->bytes)
        digest_bytes(new->bytes, new->len, out);
    else
        digest_contents(source->upper, &one, out);
}

/* What is taken away with a rename may be what held something back. */
static void judge_old_place(const struct change *change, const struct patch_bytes *old, struct verdict *out)
{
    struct classify_input gone = { .path = change->from,
                                   .path_len = strlen(change->from),
                                   .old = side_of(&change->old, old) };
    struct verdict verdict;

    classify(&gone, &verdict);
    if (verdict.class > out->class)
        *out = verdict;
}

static void verdict_of(const struct patch_source *source, const struct change *change, const char *in_bare,
                       struct verdict *out, struct digest *content)
{
    struct patch_bytes old, new;
    struct classify_input input = { .path = change->path,
                                    .path_len = strlen(change->path),
                                    .in_bare = in_bare };

    patch_read(source, change, &old, &new);
    if (change->kind != CHANGE_RENAMED)
        input.old = side_of(&change->old, &old);
    input.new = side_of(&change->new, &new);
    classify(&input, out);
    if (change->kind == CHANGE_RENAMED)
        judge_old_place(change, &old, out);
    digest_of(source, change, &new, content);
    patch_bytes_free(&old);
    patch_bytes_free(&new);
}

void verdicts_of(const struct patch_source *source, const struct changes *changes, struct verdict *out,
                 struct digest *contents)
{
    autobare struct bare_walk walk = BARE_WALK_NONE;

    for (size_t i = 0; i < changes->len; i++) {
        const struct change *change = &changes->items[i];

        verdict_of(source, change, bare_part(&walk, source, change->path), &out[i], &contents[i]);
    }
}
