#include "keeper/count.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "box/plan.h"
#include "box/steps.h"
#include "changes/changes.h"
#include "keeper/upper.h"
#include "store/bottom.h"
#include "store/livecopy.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* What a layer lies on. */
struct below {
    struct strings chain;
    char copy[ID_LENGTH + 1];
};

static int read_below(const struct count *count, const char *layer, struct below *out, struct error *err)
{
    autolayerinfo struct layer_info info = LAYER_INFO_NONE;
    int layers = count->stage.layers;
    autofree char *known = text_format("%s/" LIVECOPY_KNOWN, layer);

    if (faccessat(layers, known, F_OK, AT_SYMLINK_NOFOLLOW) == 0) /* it has also what steps before it changed */
        return error_set(err, ERROR_UNSUPPORTED, "changes beside living processes are not counted");
    if (layers_read(layers, layer, &info, err) < 0 || layers_chain(layers, info.parent, &out->chain, err) < 0)
        return -1;
    return bottom_find(layers, info.parent, out->copy, err);
}

static bool is_empty(int upper)
{
    int again = openat(upper, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autoclosedir DIR *entries = again < 0 ? NULL : fdopendir(again);

    return entries && !sys_next_entry(entries) && !errno;
}

static int count_upper(const struct count *count, const struct below *below, const struct step *step, int upper,
                       struct error *err)
{
    const struct tree *tree = &count->plan->trees.items[step->tree];
    bool shifted = count->plan->ids.shifted, copied = tree->origin && *below->copy;
    struct showing showing = { .state = count->state,
                               .chain = &below->chain,
                               .number = (uint64_t)step->layer,
                               .base = tree->source,
                               .device = tree->device,
                               .inode = tree->inode,
                               .copy = copied ? below->copy : NULL,
                               .hide = tree->origin ? NULL : &tree->hide,
                               .trusted = shifted };
    autoclose int view = showing_mount(&count->stage, &showing, err);
    struct changes_source source = { .upper = upper,
                                     .base = view,
                                     .marks = shifted ? CHANGES_MARKS_TRUSTED : CHANGES_MARKS_USER,
                                     .inside = tree->target,
                                     .linked = true };
    autochanges struct changes changes = CHANGES_NONE;

    if (view < 0 || changes_scan(&source, &changes, err) < 0)
        return -1;
    count->found(count->owner, &changes, upper, tree->target);
    return 0;
}

static int count_tree(const struct count *count, const struct below *below, const char *layer,
                      const struct step *step, struct error *err)
{
    autofree char *path = text_format("%s/u%d", layer, step->layer);
    autoclose int upper = sys_open_beneath(count->stage.layers, path, O_RDONLY | O_DIRECTORY);

    if (upper < 0)
        return errno == ENOENT ? 0 : error_sys(err, "open the layer %s", layer);
    return is_empty(upper) ? 0 : count_upper(count, below, step, upper, err);
}

static bool is_first(const struct plan *plan, const struct step *step)
{
    return strcmp(plan->trees.items[step->tree].why, TREE_WHY_WORKSPACE) == 0;
}

int count_layer(const struct count *count, const char *layer, struct error *err)
{
    const struct plan *plan = count->plan;
    struct below below = { .chain = STRINGS_NONE };
    int result = read_below(count, layer, &below, err);

    for (int first = 1; first >= 0; first--)
        for (size_t i = 0; result == 0 && i < plan->steps.len; i++)
            if (step_is_writable(plan, &plan->steps.items[i]) && is_first(plan, &plan->steps.items[i]) == first)
                result = count_tree(count, &below, layer, &plan->steps.items[i], err);
    strings_free(&below.chain);
    return result;
}

int count_apart(const struct plan *plan, int (*act)(void *argument), void *argument, struct error *err)
{
    return upper_act(&plan->ids, act, argument, err);
}
