#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct error;

/* Who runs Cove on what: read once at start, never changed.  Paths are absolute with every
 * symbolic link resolved (of `state` as far as it exists). */
struct host {
    uid_t uid;
    gid_t gid;
    char *name; /* of the user; "user" if the system knows none */
    char *home; /* "/" if there is none that is theirs */
    char *shell;
    char *cwd;
    char *state;    /* $COVE_HOME, /var/lib/cove or $XDG_STATE_HOME/cove */
    bool root;      /* by ability: may map a range of ids and id-map mounts; not by uid 0 */
    char **environ; /* borrowed */
    /* Root's next sandbox gets this range of ids; 0: any.  Whoever lies on layers needs the one they have
     * (store/layers.h). */
    uint32_t id_base;
};

#define autohost __attribute__((cleanup(host_free)))

/* Changes nothing on disk.  Refuses to go on as uid 0 of the machine without the abilities that
 * keep that id out of sandboxes, and with a state directory that others could replace. */
int host_read(struct host *host, struct error *err);
void host_free(struct host *host);

/* Makes the state directory, 0700, with the directories above it; refuses what is there already if
 * it is somebody else's or open to others. */
int host_make_directory(const struct host *host, struct error *err);
