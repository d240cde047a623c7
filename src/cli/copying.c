#include "cli/copying.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "box/place.h"
#include "box/plan.h"
#include "box/private_copy.h"
#include "box/workspace.h"
#include "cli/say.h"
#include "cli/view.h"
#include "keeper/held.h"
#include "keeper/record.h"
#include "store/bottom.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

enum { PATIENCE_US = 500000, BEAT_US = 100000 };

/* When the next word is due. */
struct progress {
    uint64_t next;
    bool shown, watched;
};

static bool go_on(void *owner, uint64_t files, uint64_t bytes)
{
    struct progress *progress = owner;
    uint64_t now = clock_us();

    if (now >= progress->next && progress->watched) {
        autotext struct text size = TEXT_NONE;

        view_space(bytes, &size);
        fprintf(stderr, "\rcopying the workspace: %" PRIu64 " files, %s\033[K", files, text_string(&size));
        fflush(stderr);
        progress->next = now + BEAT_US;
        progress->shown = true;
    }
    return !held_waits();
}

static int take(struct plan *plan, const struct private_place *place, struct error *err)
{
    struct progress progress = { .next = clock_us() + PATIENCE_US, .watched = isatty(STDERR_FILENO) };
    struct copytree how = { .from = -1, .to = -1, .go_on = go_on, .owner = &progress };
    autostrings struct strings notes = STRINGS_NONE;
    int result = private_copy_take(plan, place, &how, &notes, err);

    if (progress.shown)
        fputs("\r\033[K", stderr);
    for (size_t i = 0; result == 0 && i < notes.len; i++)
        say_warning("left out of the copy: %s", notes.items[i]);
    return result;
}

static int take_shared(struct plan *plan, const char *state, const struct sandbox_dir *dir, struct error *err)
{
    autoclose int layers = layers_open(state, err);
    autoclose int alone = layers < 0 ? -1 : layers_keep_out_sweeps(layers, err);
    struct stack_place place = {
        .layers = layers, .sandbox = dir->fd, .id = dir->id, .ids = plan->ids.shifted ? plan->ids.base : 0
    };
    char lid[ID_LENGTH + 1];
    autoclose int made = alone < 0 ? -1 : bottom_begin(&place, lid, err);

    if (made < 0)
        return -1;

    autofree char *path = text_format("%s/layers/%s", state, lid);

    if (take(plan, &(struct private_place){ made, path }, err) < 0)
        return -1;
    return bottom_finish(&place, lid, err);
}

int copying_take(struct plan *plan, const char *state, const struct sandbox_dir *dir, bool shared,
                 struct error *err)
{
    autofree char *path = text_format("%s/sandboxes/%s", state, dir->id);

    return shared ? take_shared(plan, state, dir, err)
                  : take(plan, &(struct private_place){ dir->fd, path }, err);
}

static char *find_copy(const char *state, const struct sandbox_dir *dir, struct error *err)
{
    autoclose int layers = layers_open(state, err);
    autofree char *below = layers < 0 ? NULL : bottom_place(dir->fd, layers, dir->id, err);

    return below ? text_format("%s/%s", state, below) : NULL;
}

int copying_use(struct plan *plan, const char *state, const struct sandbox_dir *dir, struct error *err)
{
    autofree char *path = find_copy(state, dir, err);
    autoclose int fd = path ? open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;

    if (fd < 0)
        return path ? error_sys(err, "open %s", path) : -1;
    return private_copy_use(plan, &(struct private_place){ fd, path }, err);
}

/* --- a workspace that is gone --- */

static const struct record_layer *layer_of(const struct record *record)
{
    for (size_t i = 0; i < record->layers.len; i++)
        if (record_is_on_copy(record, &record->layers.items[i]))
            return &record->layers.items[i];
    return NULL;
}

int copying_recall(const struct record *record, const char *state, const struct sandbox_dir *dir,
                   struct workspace *workspace, struct trees *trees, struct error *err)
{
    const struct record_layer *layer = layer_of(record);
    autoplace struct place place = PLACE_NONE;
    autofree char *copies = NULL, *path = NULL;

    if (!layer || access(record->cwd, F_OK) == 0)
        return 1;
    copies = find_copy(state, dir, err);
    if (!copies)
        return -1;
    path = text_format("%s/b%" PRIu64, copies, layer->number);
    if (place_open(AT_FDCWD, path, &place) < 0)
        return error_sys(err, "open the copy of %.200s", record->workspace);
    workspace->root = text_copy(record->workspace);
    workspace->cwd = text_copy(record->cwd);

    struct tree *tree = trees_add(trees, &place, layer->target, TREE_COW, TREE_WHY_WORKSPACE);

    tree->origin = text_copy(layer->source);
    tree->origin_device = layer->device;
    tree->origin_inode = layer->inode;
    return 0;
}

void copying_drop(const char *state, const char *id)
{
    struct error ignored;
    autoclose int layers = layers_open(state, &ignored);

    if (layers >= 0)
        (void)layers_release_all(layers, id, &ignored);
}
