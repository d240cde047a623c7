#pragma once

/* Reads git's index, versions 2 to 4, with SHA-1 or SHA-256 names.  The bytes are hostile.  Nothing is
 * believed but the form: neither the checksum nor the order of the entries. */

#include <stdbool.h>
#include <stddef.h>

enum { GITINDEX_BYTES_MAX = 512 << 20, GITINDEX_PATH_MAX = 4096 };

struct gitindex_entry {
    const char *path; /* until the call returns */
    bool assumed;     /* assume-unchanged: git does not look whether it changed */
    bool skipped;     /* skip-worktree: git takes it for unchanged */
};

typedef void gitindex_visit(void *owner, const struct gitindex_entry *entry);

/* What stands behind the entries. */
struct gitindex {
    bool fsmonitor; /* says which files need not be looked at */
    bool split;     /* most entries are in another file */
};

/* Calls `visit`, unless NULL, for each entry.  -1: it is no such file, and nothing was visited. */
int gitindex_read(const char *bytes, size_t len, gitindex_visit *visit, void *owner, struct gitindex *out);
