#pragma once

/* Inside box/ only: which mounts of a sandbox have to do with a switch of its layers. */

#include "box/orders.h"
#include "init/protocol.h"

struct switch_entry {
    const struct step *step;
    struct made_mount *made; /* of the list of all mounts; `id` is replaced when there is a fresh one */
    bool overlay, file;      /* one that comes anew: a writable overlay, or a file of one that is sealed */
    bool inside;             /* it is mounted in an overlay that comes anew */
};

/* By path: parents first.  The first one is the root, unless all of them are overlays in which nothing is
 * mounted: then each is replaced where it is. */
struct switch_list {
    struct switch_entry items[ASIDE_MOUNTS_MAX];
    size_t len;
    uint64_t trees; /* whose overlays are in it, as in struct box_switch */
    bool nested;    /* something is mounted in one of them */
};

/* Of the overlays of these trees, and what has to move for them. */
int switch_list_fill(const struct plan *plan, struct made *mounted, uint64_t trees, struct switch_list *out,
                     struct error *err);

/* As PID 1 reads it: a memfd. */
int switch_list_write(const struct switch_list *list, const struct plan *plan, struct error *err);
