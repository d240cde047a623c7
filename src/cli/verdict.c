#include "cli/verdict.h"

#include "base/own.h"
#include "base/text.h"
#include "changes/changes.h"
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

void verdict_of(const struct patch_source *source, const struct changes *changes, size_t index,
                struct verdict *out)
{
    const struct change *change = &changes->items[index];
    struct patch_bytes old, new;
    struct classify_input input = { .path = change->path, .path_len = strlen(change->path) };

    patch_read(source, change, &old, &new);
    if (change->kind != CHANGE_RENAMED)
        input.old = side_of(&change->old, &old);
    input.new = side_of(&change->new, &new);
    classify(&input, out);
    patch_bytes_free(&old);
    patch_bytes_free(&new);
}
