#pragma once

/* Named states of sandboxes, which outlive them.
 *
 *   snapshots/<name>/   spec.json    what the sandbox was
 *                       record.json  what was known of it
 *                       layer        a link that leads nowhere: the frozen layer, held as snapshot.<name> */

#include "base/array.h"
#include "keeper/record.h"
#include "store/store.h"

struct snapshot {
    struct record record; /* of its sandbox, at that time */
    char layer[ID_LENGTH + 1];
    uint64_t step; /* that the layer was made after, of the sandbox it is from */
    struct timespec made;
};

#define SNAPSHOT_NONE ((struct snapshot){ .record = RECORD_NONE })
#define autosnapshot __attribute__((cleanup(snapshot_free)))

void snapshot_free(struct snapshot *snapshot);

/* ERROR_INVALID if the name is none, or taken.  `dir` is the sandbox's directory, which holds the layer. */
int snapshot_make(const char *state, const char *name, int dir, const struct record *record, const char *layer,
                  struct error *err);

/* ERROR_MISSING if there is none. */
int snapshot_read(const char *state, const char *name, struct snapshot *out, struct error *err);

/* Lets go of its layer too. */
int snapshot_remove(const char *state, const char *name, struct error *err);

/* Their names, sorted. */
int snapshots_list(const char *state, struct strings *out, struct error *err);
