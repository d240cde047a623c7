#include "box/orders.h"

#include "base/error.h"
#include "base/memory.h"

#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

/* Only what is written takes memory.  The largest part of a plan are hidden paths, of which the
 * kernel takes some thousand as mounts before it gives up. */
enum { SPACE = 64 << 20 };

struct shared {
    struct orders orders;
    size_t used;
    bool full;
    _Alignas(max_align_t) char space[];
};

struct orders *orders_new(void)
{
    void *space = mmap(NULL, SPACE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return space == MAP_FAILED ? NULL : &((struct shared *)space)->orders;
}

void orders_free(struct orders *orders)
{
    if (orders)
        munmap(orders, SPACE);
}

/* NULL: there is no room any more. */
static void *take(struct shared *shared, size_t size)
{
    size_t room = SPACE - sizeof *shared, rounded = (size + 15) & ~(size_t)15;

    if (rounded < size || rounded > room - shared->used) {
        shared->full = true;
        return NULL;
    }
    void *place = shared->space + shared->used;

    shared->used += rounded;
    return place;
}

static void *copy(struct shared *shared, const void *from, size_t size)
{
    void *place = from && size ? take(shared, size) : NULL;

    return place ? memcpy(place, from, size) : NULL;
}

static char *copy_text(struct shared *shared, const char *text)
{
    return text ? copy(shared, text, strlen(text) + 1) : NULL;
}

static void copy_strings(struct shared *shared, struct strings *strings)
{
    strings->items = copy(shared, strings->items, strings->len * sizeof *strings->items);
    for (size_t i = 0; strings->items && i < strings->len; i++)
        strings->items[i] = copy_text(shared, strings->items[i]);
}

static void copy_steps(struct shared *shared, struct steps *steps)
{
    steps->items = copy(shared, steps->items, steps->len * sizeof *steps->items);
    for (size_t i = 0; steps->items && i < steps->len; i++) {
        struct step *step = &steps->items[i];

        step->target = copy_text(shared, step->target);
        step->source = copy_text(shared, step->source);
    }
}

static void copy_trees(struct shared *shared, struct trees *trees)
{
    trees->items = copy(shared, trees->items, trees->len * sizeof *trees->items);
    for (size_t i = 0; trees->items && i < trees->len; i++) {
        struct tree *tree = &trees->items[i];

        tree->source = copy_text(shared, tree->source);
        tree->target = copy_text(shared, tree->target);
        copy_strings(shared, &tree->hide);
    }
}

/* No step makes more than one mount. */
static struct made *make_list(struct shared *shared, size_t steps)
{
    struct made *made = take(shared, sizeof *made + steps * sizeof *made->items);

    if (made)
        made->room = steps;
    return made;
}

struct made *made_join(const struct made *one, const struct made *other)
{
    size_t count = one->count + other->count;
    struct made *all = memory_zero(sizeof *all + count * sizeof *all->items);

    all->count = all->room = count;
    memcpy(all->items, one->items, one->count * sizeof *one->items);
    memcpy(all->items + one->count, other->items, other->count * sizeof *other->items);
    return all;
}

int orders_write(struct orders *orders, const struct plan *plan, const struct strings *joins, const char *state,
                 const char *id, struct error *err)
{
    struct shared *shared = (struct shared *)orders;
    struct plan *copied = &orders->plan;

    *copied = *plan;
    copy_steps(shared, &copied->steps);
    copy_trees(shared, &copied->trees);
    copy_strings(shared, &copied->writable);
    copy_strings(shared, &copied->stack);
    copy_strings(shared, &copied->granted);
    copied->argv = copied->env = STRINGS_NONE;
    copied->cwd = copied->workspace = copied->hostname = NULL;
    copied->limits.place = CGROUP_PLACE_NONE;
    orders->joins = *joins;
    copy_strings(shared, &orders->joins);
    copied->image_check = (struct image_check){ 0 };
    orders->state = copy_text(shared, state);
    orders->id = copy_text(shared, id);
    orders->by_mounter = make_list(shared, plan->steps.len);
    orders->by_clone = make_list(shared, plan->steps.len);
    if (shared->full)
        return error_set(err, ERROR_INVALID, "the plan is too large: too many paths are hidden or granted");
    return 0;
}
