#pragma once

/* Brings files back to how another view of the same tree shows them, where they are, through what is mounted:
 * for processes that go on with them.  Nobody may write to them meanwhile. */

#include "base/map.h"
#include "store/merge.h"

#include <stddef.h>
#include <stdint.h>

struct restore {
    int wanted; /* how it should be: the top of a tree, of which is only read */
    int live;   /* how it is: the same tree */

    /* Upper directories in which everything lies that may differ: other names are not looked at.  With `pair`
     * they are two, one of each state, and a file that both have as one is the same. */
    const int *layers;
    size_t count;
    bool pair;
    const struct map *opaque; /* what restore_find_opaque() found in them */
};

enum { RESTORE_LAYERS_MAX = 2 * (LAYERS_DEPTH_MAX + 1) };

/* Finds the directories that hide what lies below them: whoever is root in a namespace only cannot see the
 * marks of root's overlays, and has to be told. */
int restore_find_opaque(const int *layers, size_t count, enum merge_marks marks, struct map *out,
                        struct error *err);

/* Only what differs is touched: a file is replaced at once and whole, by a rename in its directory; a directory
 * that is in both states stays.  Owners, modes, times, extended attributes and hard links among what is
 * replaced come back, too.  By handles, no link is followed, and nothing that is mounted in the tree is looked
 * at.  Adds to `changed` what was touched.  After a failure each file is in one of its two states. */
int restore_run(const struct restore *restore, uint64_t *changed, struct error *err);
