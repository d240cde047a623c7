#pragma once

/* Whether a change may go to the host while the sandbox runs. */

#include "changes/changes.h"
#include "keeper/live_known.h"

/* Both sides, by handles, and what is known of the sandbox. */
struct live_sides {
    int upper, base;
    enum changes_marks marks;
    const char *inside;
    const struct strings *hide;
    uid_t shift;
    struct timespec since; /* what the owner's tree was stamped with before is what the sandbox saw */
};

/* NULL: it may.  Else why it waits for consent: it runs or steers something merely by being there, or is
 * git's own.  `copy` is the file as it will be, -1: as it is in the layer now. */
const char *judge_waits(const struct live_sides *sides, const struct change *change, int copy);

/* Whether it is a repository by its name, or lies in one. */
bool judge_is_gits(const char *path);

/* Whether the owner, and not us, has changed what lies there since the sandbox began. */
bool judge_is_owners(const struct live_sides *sides, const struct known *known, const struct change *change);
