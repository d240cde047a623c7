#pragma once

/* Package files, shared by all sandboxes of a user: packages/<checksum> in the state directory.
 *
 * A file is there whole or not at all, is what its name says, and is never written to again.  Nobody but its
 * owner can open the directory; a gateway gets single files, to read, from its keeper.  What each was last used
 * is its time of change. */

#include "base/checksum.h"

#include <stdbool.h>
#include <stdint.h>

struct error;

enum {
    PACKAGE_BYTES_MAX = 256 << 20, /* of one file */
    PACKAGE_BYTES_MIN = 4096,      /* that one counts, however small it is */
};

/* A handle on the directory, made if it is not there, by one on a sandbox's directory. */
int packages_enter(int sandbox, struct error *err);

/* The same by the path of the state directory, of what exists; ERROR_MISSING if it does not. */
int packages_open(const char *state, struct error *err);

/* A handle to read the file of that name, which counts as used now; -1: it is not there. */
int packages_get(int dir, const char *name, uint64_t *size);

/* A file without a name in the same place, for what is still to be looked at; -1 and errno on failure. */
int packages_spool(int dir);

enum packages_added { PACKAGE_ADDED, PACKAGE_WRONG, PACKAGE_FAILED };

/* Copies what `spool` has from its beginning, and gives it that name if it is its checksum: what is there then
 * are the bytes that were looked at, whoever still writes to the spool.  `size`: of what was added. */
enum packages_added packages_add(int dir, int spool, const char *name, uint64_t *size);

/* Removes a file that is not what its name says. */
void packages_check(int dir, const char *name);

/* What lies there, in bytes.  Beyond `most` the files that were not used the longest are removed, until there
 * is a tenth less; files that somebody reads stay readable for them.  `dry`: nothing is. */
struct packages_usage {
    uint64_t bytes, files, removed_bytes, removed_files;
};

int packages_trim(int dir, uint64_t most, bool dry, struct packages_usage *out, struct error *err);
