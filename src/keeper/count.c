#include "keeper/count.h"

#include "base/array.h"
#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "box/plan.h"
#include "box/steps.h"
#include "changes/changes.h"
#include "keeper/upper.h"
#include "store/bottom.h"
#include "store/lineage.h"
#include "store/livecopy.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* What a layer is compared with. */
struct below {
    struct strings chain, own; /* what is shown of it; and of the layer itself, if both are shown whole */
    struct strings apart;      /* then: the layers that they differ by */
    char copy[ID_LENGTH + 1];
    bool whole, beside;
};

#define autobelow __attribute__((cleanup(below_free)))

static void below_free(struct below *below)
{
    strings_free(&below->chain);
    strings_free(&below->own);
    strings_free(&below->apart);
}

/* Made while processes were alive, of all that was written since the last switch. */
static bool is_live(const struct count *count, const char *layer)
{
    autofree char *known = text_format("%s/" LIVECOPY_KNOWN, layer);

    return faccessat(count->stage.layers, known, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* A layer has what was written since the layer below it: that of the step alone, unless there was a copy
 * between them. */
static int read_parent(const struct count *count, const char *layer, struct below *out, struct error *err)
{
    autolayerinfo struct layer_info info = LAYER_INFO_NONE;
    int layers = count->stage.layers;

    if (layers_read(layers, layer, &info, err) < 0 || layers_chain(layers, info.parent, &out->chain, err) < 0)
        return -1;
    return bottom_find(layers, info.parent, out->copy, err);
}

static int read_both(const struct count *count, const char *layer, const char *before, struct below *out,
                     struct error *err)
{
    int layers = count->stage.layers;

    out->whole = true;
    if (layers_chain(layers, before, &out->chain, err) < 0 || layers_chain(layers, layer, &out->own, err) < 0 ||
        lineage_apart(layers, before, layer, &out->apart, err) < 0)
        return -1;
    out->beside = out->apart.len == 2 && strcmp(out->apart.items[0], before) == 0 &&
                  strcmp(out->apart.items[1], layer) == 0;
    return bottom_find(layers, layer, out->copy, err);
}

static int read_below(const struct count *count, const char *layer, const char *before, struct below *out,
                      struct error *err)
{
    if (*before && is_live(count, before))
        return read_both(count, layer, before, out, err);
    if (!*before && is_live(count, layer))
        return error_set(err, ERROR_UNSUPPORTED, "what was there before this copy is not known");
    return read_parent(count, layer, out, err);
}

static bool is_empty(int upper)
{
    int again = openat(upper, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autoclosedir DIR *entries = again < 0 ? NULL : fdopendir(again);

    return entries && !sys_next_entry(entries) && !errno;
}

/* What a stack shows of a tree. */
static int show(const struct count *count, const struct below *below, const struct strings *chain,
                const struct step *step, struct error *err)
{
    const struct tree *tree = &count->plan->trees.items[step->tree];
    struct showing showing = { .state = count->state,
                               .chain = chain,
                               .number = (uint64_t)step->layer,
                               .base = tree->source,
                               .device = tree->device,
                               .inode = tree->inode,
                               .copy = tree->origin && *below->copy ? below->copy : NULL,
                               .hide = tree->origin ? NULL : &tree->hide,
                               .trusted = count->plan->ids.shifted };

    return showing_mount(&count->stage, &showing, err);
}

static int scan(const struct count *count, const struct step *step, const struct changes_source *what,
                struct error *err)
{
    struct changes_source source = *what;
    autochanges struct changes changes = CHANGES_NONE;

    source.marks = count->plan->ids.shifted ? CHANGES_MARKS_TRUSTED : CHANGES_MARKS_USER;
    source.inside = count->plan->trees.items[step->tree].target;
    source.linked = true;
    if (changes_scan(&source, &changes, err) < 0)
        return -1;
    count->found(count->owner, &changes, source.upper, source.inside);
    return 0;
}

static int open_upper(const struct count *count, const char *layer, const struct step *step, struct error *err)
{
    autofree char *path = text_format("%s/u%d", layer, step->layer);
    int upper = sys_open_beneath(count->stage.layers, path, O_RDONLY | O_DIRECTORY);

    if (upper < 0 && errno != ENOENT)
        error_sys(err, "open the layer %s", layer);
    return upper;
}

static int count_upper(const struct count *count, const struct below *below, const char *layer,
                       const struct step *step, struct error *err)
{
    autoclose int upper = open_upper(count, layer, step, err), view = -1;

    if (upper < 0)
        return errno == ENOENT ? 0 : -1;
    if (is_empty(upper))
        return 0;
    view = show(count, below, &below->chain, step, err);
    return view < 0 ? -1 : scan(count, step, &(struct changes_source){ .upper = upper, .base = view }, err);
}

/* Both whole, and only looked at where a layer says that they may differ. */
static int scan_between(const struct count *count, const struct below *below, const struct step *step,
                        const int *touched, size_t count_touched, struct error *err)
{
    autoclose int base = show(count, below, &below->chain, step, err),
                  upper = base < 0 ? -1 : show(count, below, &below->own, step, err);
    struct changes_source source = { .upper = upper,
                                     .base = base,
                                     .touched = touched,
                                     .touched_count = count_touched,
                                     .beside = below->beside };

    return upper < 0 ? -1 : scan(count, step, &source, err);
}

static int count_between(const struct count *count, const struct below *below, const struct step *step,
                         struct error *err)
{
    int touched[2 * LAYERS_DEPTH_MAX], result = 0;
    size_t len = 0;

    for (size_t i = 0; result == 0 && i < below->apart.len && len < ARRAY_LEN(touched); i++) {
        touched[len] = open_upper(count, below->apart.items[i], step, err);
        if (touched[len] >= 0)
            len++;
        else
            result = errno == ENOENT ? 0 : -1;
    }
    if (result == 0 && len)
        result = scan_between(count, below, step, touched, len, err);
    while (len)
        close(touched[--len]);
    return result;
}

static int count_tree(const struct count *count, const struct below *below, const char *layer,
                      const struct step *step, struct error *err)
{
    return below->whole ? count_between(count, below, step, err) : count_upper(count, below, layer, step, err);
}

static bool is_first(const struct plan *plan, const struct step *step)
{
    return strcmp(plan->trees.items[step->tree].why, TREE_WHY_WORKSPACE) == 0;
}

int count_layer(const struct count *count, const char *layer, const char *before, struct error *err)
{
    const struct plan *plan = count->plan;
    autobelow struct below below = { .chain = STRINGS_NONE };
    int result = read_below(count, layer, before, &below, err);

    for (int first = 1; first >= 0; first--)
        for (size_t i = 0; result == 0 && i < plan->steps.len; i++)
            if (step_is_writable(plan, &plan->steps.items[i]) && is_first(plan, &plan->steps.items[i]) == first)
                result = count_tree(count, &below, layer, &plan->steps.items[i], err);
    return result;
}

int count_apart(const struct plan *plan, int (*act)(void *argument), void *argument, struct error *err)
{
    return upper_act(&plan->ids, act, argument, err);
}
