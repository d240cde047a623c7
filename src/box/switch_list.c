#include "box/switch_list.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "box/steps.h"
#include "store/stack.h"
#include "sys/sys.h"

#include <stdlib.h>
#include <string.h>

static const struct made_mount *find(const struct made *mounted, uint64_t id)
{
    for (size_t i = 0; i < mounted->count; i++)
        if (mounted->items[i].id == id)
            return &mounted->items[i];
    return NULL;
}

struct filling {
    const struct plan *plan;
    struct made *mounted;
    uint64_t trees; /* 0: all */
};

/* One that is to be replaced. */
static bool is_replaced(const struct filling *filling, const struct made_mount *made)
{
    const struct step *step = made ? &filling->plan->steps.items[made->step] : NULL;

    return step && step_is_writable(filling->plan, step) && step_is_of(step, filling->trees);
}

/* What lies in something else that stays moves along with it. */
static bool concerns(const struct filling *filling, struct made_mount *made, struct switch_entry *out)
{
    const struct step *step = &filling->plan->steps.items[made->step];
    bool inside = is_replaced(filling, find(filling->mounted, made->parent));

    *out = (struct switch_entry){ .step = step,
                                  .made = made,
                                  .overlay = is_replaced(filling, made),
                                  .inside = inside,
                                  .file = inside && step->kind == STEP_FILE };
    return out->overlay || inside;
}

static int by_target(const void *a, const void *b)
{
    return strcmp(((const struct switch_entry *)a)->step->target,
                  ((const struct switch_entry *)b)->step->target);
}

static int add_all(const struct filling *filling, struct switch_list *out, struct error *err)
{
    struct switch_entry entry;

    out->len = 0;
    out->trees = 0;
    out->nested = false;
    for (size_t i = 0; i < filling->mounted->count; i++) {
        if (!concerns(filling, &filling->mounted->items[i], &entry))
            continue;
        if (out->len == ASIDE_MOUNTS_MAX)
            return error_set(err, ERROR_UNSUPPORTED, "more than %d trees are mounted", ASIDE_MOUNTS_MAX);
        if (filling->trees && entry.overlay)
            out->trees |= 1ULL << entry.step->layer;
        out->nested |= entry.inside;
        out->items[out->len++] = entry;
    }
    if (out->len)
        qsort(out->items, out->len, sizeof *out->items, by_target);
    return 0;
}

static bool has_root(const struct switch_list *list)
{
    return list->len && list->items[0].overlay && strcmp(list->items[0].step->target, "/") == 0;
}

/* What is mounted in an overlay needs a room to wait in, and that takes the place of the root: so that goes
 * along, though nothing of it changes. */
int switch_list_fill(const struct plan *plan, struct made *mounted, uint64_t trees, struct switch_list *out,
                     struct error *err)
{
    struct filling filling = { plan, mounted, trees };

    if (plan->writable.len > ASIDE_WRITABLE_MAX)
        return error_set(err, ERROR_UNSUPPORTED, "more than %d paths can be written to", ASIDE_WRITABLE_MAX);
    if (add_all(&filling, out, err) < 0)
        return -1;
    if (trees && out->len && !has_root(out) && !out->nested)
        return 0;
    if (trees && !has_root(out)) {
        for (size_t i = 0; i < plan->steps.len; i++)
            if (plan->steps.items[i].kind == STEP_ROOT && plan->steps.items[i].layer < STACK_TREES_MAX)
                filling.trees |= 1ULL << plan->steps.items[i].layer;
        if (add_all(&filling, out, err) < 0)
            return -1;
    }
    return has_root(out) ? 0 : error_set(err, ERROR_INVALID, "the sandbox has no writable root");
}

static void add_path(struct text *text, const char *path)
{
    text_add_bytes(text, path, strlen(path) + 1);
}

int switch_list_write(const struct switch_list *list, const struct plan *plan, struct error *err)
{
    struct aside_list head = { .mounts = (uint32_t)list->len,
                               .writable = (uint32_t)plan->writable.len,
                               .landlock_abi = plan->landlock_abi };
    autotext struct text bytes = TEXT_NONE;

    text_add_bytes(&bytes, &head, sizeof head);
    for (size_t i = 0; i < list->len; i++) {
        const struct switch_entry *entry = &list->items[i];
        struct aside_mount mount = { .id = entry->made->id,
                                     .flags = (entry->overlay || entry->file ? ASIDE_FRESH : 0U) |
                                              (entry->step->kind == STEP_FILE ? ASIDE_FILE : 0U) };

        text_add_bytes(&bytes, &mount, sizeof mount);
    }
    for (size_t i = 0; i < list->len; i++)
        add_path(&bytes, list->items[i].step->target);
    for (size_t i = 0; i < plan->writable.len; i++)
        add_path(&bytes, plan->writable.items[i]);

    int fd = bytes.len > ASIDE_SIZE_MAX ? -1 : sys_sealed_memfd("aside", bytes.data, bytes.len);

    return fd < 0 ? error_sys(err, "write the list of mounts") : fd;
}
