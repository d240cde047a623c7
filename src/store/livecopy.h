#pragma once

/* A copy of a sandbox's directories u0 u1 ... while they are mounted and in use: for a layer that shows them as
 * they are at one instant.  Nobody may write to them meanwhile. */

#include <stdbool.h>
#include <stdint.h>

struct error;

/* A file in each such layer: what the next copy has to know of it. */
#define LIVECOPY_KNOWN "known"

struct livecopy {
    int uppers;                    /* the sandbox's directory */
    int before;                    /* the layer of the last such copy; -1: there is none */
    int out;                       /* the new layer's directory, with no uK in it yet */
    uint64_t bytes_max, files_max; /* that may have to be copied; 0: any number */
    bool silent; /* somebody could change a file without its times telling: the next copy takes nothing over */
};

enum livecopy_outcome {
    LIVECOPY_MADE,
    LIVECOPY_SAME,     /* nothing has changed since `before`; `out` is as it was */
    LIVECOPY_TOO_MUCH, /* more has changed than may be copied; the same */
};

struct livecopy_done {
    enum livecopy_outcome outcome;
    uint64_t files, bytes; /* that had changed */
};

/* What did not change since `before` is a hard link to its copy there, known by inode, size and times; the rest
 * is copied, contents shared where the file system can do that.  Kept is everything: owners, modes, times,
 * links and hard links, white-outs, extended attributes with the overlay's own marks.  By handles, and no link
 * is followed.  Who has closed a directory to its owner closes it to us, as in store/merge.h.  After a failure
 * the caller removes what is in `out`. */
int livecopy_run(const struct livecopy *copy, struct livecopy_done *done, struct error *err);
