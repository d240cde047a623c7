#include "cli/between.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "box/plan.h"
#include "cli/options.h"
#include "cli/point.h"
#include "cli/whereabouts.h"
#include "keeper/showing.h"
#include "keeper/snapshots.h"
#include "keeper/states.h"
#include "store/bottom.h"
#include "store/lineage.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* --- words --- */

static bool is_number(const char *word)
{
    return word && *word && strlen(word) < 19 && !word[strspn(word, "0123456789")];
}

/* "A..B", numbers or names of snapshots; a path that looks so is written ./A..B. */
static bool split(const char *word, char **from, char **to)
{
    const char *dots = strstr(word, "..");
    autofree char *left = dots ? text_format("%.*s", (int)(dots - word), word) : NULL;

    if (!dots || !record_is_name(left) || !record_is_name(dots + 2))
        return false;
    if (from) {
        *from = steal_ptr(&left);
        *to = text_copy(dots + 2);
    }
    return true;
}

/* Which of the words it is, 0 or 1; -1: none. */
static int range_at(const struct strings *words)
{
    for (int i = 0; i < 2 && (size_t)i < words->len; i++)
        if (split(words->items[i], NULL, NULL))
            return i;
    return -1;
}

bool between_is_asked(const struct options *options)
{
    return options->run.step || range_at(&options->words) >= 0;
}

/* --- points --- */

struct between {
    struct changed *changed;
    struct point from, to;
    char *shown_from, *shown_to;
};

#define autobetween __attribute__((cleanup(between_free)))

static void between_free(struct between *between)
{
    free(between->shown_from);
    free(between->shown_to);
}

/* Both of snapshots, whose sandboxes may be gone: what the first one was is what is looked at. */
static int read_snapshots(struct between *between, struct error *err)
{
    struct changed *changed = between->changed;
    const char *state = changed->which.host.state;
    autosnapshot struct snapshot from = SNAPSHOT_NONE, to = SNAPSHOT_NONE;

    if (snapshot_read(state, between->shown_from, &from, err) < 0 ||
        snapshot_read(state, between->shown_to, &to, err) < 0)
        return -1;
    if (from.record.workspace_device != to.record.workspace_device ||
        from.record.workspace_inode != to.record.workspace_inode ||
        strcmp(from.record.mode, to.record.mode) != 0)
        return error_set(err, ERROR_REFUSED, "the snapshots %s and %s are of different workspaces",
                         between->shown_from, between->shown_to);
    memcpy(between->from.layer, from.layer, sizeof from.layer);
    memcpy(between->to.layer, to.layer, sizeof to.layer);
    memcpy(changed->own.id, from.record.id, sizeof changed->own.id);
    changed->own.state = KEPT_STOPPED;
    changed->own.record = from.record;
    from.record = RECORD_NONE;
    changed->kept = &changed->own;
    return 0;
}

static int read_points(struct between *between, struct error *err)
{
    const struct changed *changed = between->changed;

    return point_find(&changed->which, changed->kept, between->shown_from, &between->from, err) < 0 ||
                   point_find(&changed->which, changed->kept, between->shown_to, &between->to, err) < 0
               ? -1
               : 0;
}

/* What it lay on when it began, which is not the step before in number if it was gone back meanwhile. */
static int read_step(struct between *between, const char *word, struct error *err)
{
    const struct changed *changed = between->changed;

    if (!is_number(word) || strcmp(word, "0") == 0)
        return error_set(err, ERROR_INVALID, "--step %.40s: must be the number of a step", word);
    between->shown_to = text_copy(word);
    if (point_find(&changed->which, changed->kept, word, &between->to, err) < 0 ||
        point_begin(&changed->which, changed->kept, strtoull(word, NULL, 10), &between->from, err) < 0)
        return -1;
    between->shown_from = text_format("%llu", (unsigned long long)between->from.step);
    return 0;
}

static int gone(const char *shown, struct error *err)
{
    return err->kind != ERROR_MISSING ? -1
                                      : error_set(err, ERROR_REFUSED, "the checkpoint of %s%.70s is gone",
                                                  is_number(shown) ? "step " : "", shown);
}

/* --- trees --- */

struct trees_shown {
    struct strings chains[2], apart;
    char copy[ID_LENGTH + 1];
    struct {
        int *items;
        size_t len, cap;
    } touched;
};

#define autotreesshown __attribute__((cleanup(trees_shown_free)))

static void trees_shown_free(struct trees_shown *trees)
{
    for (size_t i = 0; i < trees->touched.len; i++)
        close(trees->touched.items[i]);
    free(trees->touched.items);
    strings_free(&trees->chains[0]);
    strings_free(&trees->chains[1]);
    strings_free(&trees->apart);
}

static int read_chains(const struct between *between, int layers, struct trees_shown *out, struct error *err)
{
    char other[ID_LENGTH + 1];

    if (layers_chain(layers, between->from.layer, &out->chains[0], err) < 0)
        return gone(between->shown_from, err);
    if (layers_chain(layers, between->to.layer, &out->chains[1], err) < 0)
        return gone(between->shown_to, err);
    if (lineage_apart(layers, between->from.layer, between->to.layer, &out->apart, err) < 0 ||
        bottom_find(layers, between->from.layer, out->copy, err) < 0 ||
        bottom_find(layers, between->to.layer, other, err) < 0)
        return -1;
    if (strcmp(out->copy, other) != 0)
        return error_set(err, ERROR_REFUSED, "%s and %s lie on different copies of the workspace",
                         between->shown_from, between->shown_to);
    return 0;
}

static int open_touched(int layers, uint64_t number, struct trees_shown *trees, struct error *err)
{
    for (size_t i = 0; i < trees->apart.len; i++) {
        autofree char *path = text_format("%s/u%llu", trees->apart.items[i], (unsigned long long)number);
        int fd = sys_open_beneath(layers, path, O_PATH | O_DIRECTORY);

        if (fd >= 0)
            *array_add(&trees->touched) = fd;
        else if (errno != ENOENT)
            return error_sys(err, "open the layer %s", trees->apart.items[i]);
    }
    return 0;
}

static int open_trees(const struct changed *changed, const struct record_layer *layer,
                      const struct trees_shown *trees, int fds[2], struct error *err)
{
    const struct record *record = &changed->kept->record;
    struct showing showings[2];
    struct ids ids;

    record_get_ids(record, &ids);
    for (size_t i = 0; i < 2; i++)
        showings[i] = (struct showing){ .state = changed->which.host.state,
                                        .chain = &trees->chains[i],
                                        .number = layer->number,
                                        .base = layer->source,
                                        .device = layer->device,
                                        .inode = layer->inode,
                                        .copy = trees->copy,
                                        .hide = *trees->copy ? NULL : &layer->hide,
                                        .trusted = record->shifted };
    return showing_open(&ids, showings, 2, fds, err);
}

static int scan(const struct between *between, struct error *err)
{
    struct changed *changed = between->changed;
    const struct record *record = &changed->kept->record;
    const struct record_layer *layer = changed_layer(record);
    autotreesshown struct trees_shown trees = { .copy = "" };
    autoclose int layers = layers_open(changed->which.host.state, err);
    int fds[2];

    if (!layer)
        return error_set(err, ERROR_MISSING, "sandbox %.12s has no workspace that it could change",
                         changed->kept->id);
    if (layers < 0 || read_chains(between, layers, &trees, err) < 0 ||
        open_touched(layers, layer->number, &trees, err) < 0 ||
        open_trees(changed, layer, &trees, fds, err) < 0)
        return -1;
    changed->base = fds[0];
    changed->upper = fds[1];
    changed->tree = fcntl(changed->base, F_DUPFD_CLOEXEC, 0);

    static const int none[1];
    struct changes_source source = { .upper = changed->upper,
                                     .base = changed->base,
                                     .marks = record->shifted ? CHANGES_MARKS_TRUSTED : CHANGES_MARKS_USER,
                                     .inside = layer->source,
                                     .linked = true,
                                     .touched = trees.touched.len ? trees.touched.items : none,
                                     .touched_count = trees.touched.len };

    return changes_scan(&source, &changed->changes, err);
}

/* --- all of it --- */

/* The sandbox is named by the first word, unless that is a range already, or a path (with --step). */
static int choose(struct between *between, const struct options *options, size_t *paths, struct error *err)
{
    struct changed *changed = between->changed;
    const struct strings *words = &options->words;
    int at = options->run.step ? -1 : range_at(words);

    if (at >= 0)
        (void)split(words->items[at], &between->shown_from, &between->shown_to);
    *paths = at < 0 ? 0 : (size_t)at + 1;
    if (at == 0 && !is_number(between->shown_from) && !is_number(between->shown_to))
        return read_snapshots(between, err);
    changed->kept = at > 0    ? which_sandbox(&changed->which, words->items[0], err)
                    : at == 0 ? which_sandbox(&changed->which, NULL, err)
                              : changed_choose(&changed->which, words, paths, err);
    if (!changed->kept)
        return -1;
    return at < 0 ? read_step(between, options->run.step, err) : read_points(between, err);
}

/* What lies on a copy needs no tree. */
static int find_workspace(const struct changed *changed, struct error *err)
{
    struct record *record = (struct record *)(uintptr_t)&changed->kept->record;
    struct error ignored;
    autofree char *here = which_work_tree(&changed->which, &ignored);

    return strcmp(record->mode, "copy") == 0 ? 0 : whereabouts_find(record, here, NULL, err);
}

int between_read(const struct options *options, struct changed *out, struct error *err)
{
    autobetween struct between between = { .changed = out };
    size_t paths = 0;

    if (which_read(&out->which, err) < 0 || choose(&between, options, &paths, err) < 0 ||
        find_workspace(out, err) < 0 || changed_paths(out, &options->words, paths, &out->paths, err) < 0 ||
        scan(&between, err) < 0)
        return -1;
    out->from = steal_ptr(&between.shown_from);
    out->to = steal_ptr(&between.shown_to);
    changed_keep(out);
    return 0;
}
