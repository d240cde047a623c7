#pragma once

/* Where a control group of a sandbox can be made. */

#include <stdbool.h>
#include <sys/types.h>

enum controller { CONTROLLER_MEMORY, CONTROLLER_CPU, CONTROLLER_PIDS, CONTROLLER_COUNT };

enum cgroup_kind {
    CGROUP_NONE,
    CGROUP_V1,      /* a tree for each controller */
    CGROUP_V2,      /* one tree */
    CGROUP_MANAGER, /* the same, made and removed by the service manager: the user's own, or root's */
};

struct cgroup_place {
    enum cgroup_kind kind;
    unsigned have;                /* of the controllers that were wanted: 1 << enum controller */
    unsigned enable;              /* which of these must be switched on in `dirs` first */
    char *dirs[CONTROLLER_COUNT]; /* V1: of each in `have`; V2: the first one; MANAGER: its socket */
};

#define CGROUP_PLACE_NONE ((struct cgroup_place){ 0 })

void cgroup_place_free(struct cgroup_place *place);

/* The place that has the most of the `wanted` controllers: a part of the tree that was delegated to us, else a
 * scope of the service manager, as in a session over ssh; where there is none, what we may write to at or above
 * our own group.  Changes nothing. */
void cgroup_place_find(unsigned wanted, struct cgroup_place *out);

/* The same with another root of the file system and other numbers: for tests. */
struct cgroup_world {
    const char *root; /* "" */
    unsigned uid;
};
void cgroup_place_find_in(const struct cgroup_world *world, unsigned wanted, struct cgroup_place *out);

/* The directory of the group that a process is in, in the tree of a controller of v1, or of v2 (""); or NULL.
 * The caller frees. */
char *cgroup_dir_of(pid_t pid, const char *controller);

/* The directory below which a group can be made that freezes (limits/freezer.h), in the tree of v2 or of v1's
 * freezer; or NULL.  The caller frees. */
char *cgroup_place_freezer(bool v1);
char *cgroup_place_freezer_in(const struct cgroup_world *world, bool v1);

const char *controller_name(enum controller controller);
