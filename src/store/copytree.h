#pragma once

#include <stdbool.h>
#include <stdint.h>

struct error;
struct strings;

/* A private copy of a directory tree, by handles: no link is followed, no other file system entered.
 *
 * Kept are contents (shared with the original where the file system can do that), holes, modes, times,
 * links and hard links; owners too if we may give files away.  Extended attributes are not.  What is no
 * file, link or directory, cannot be read, or is mounted below, is left out, with a note. */
struct copytree {
    int from, to; /* directories; `to` is empty.  Both remain the caller's */

    const char *only; /* this one name in `from` instead of all that is in it; or NULL */

    const struct strings *leave; /* sorted paths below `from` that are not copied; or NULL */

    /* Asked often, also inside big files; false ends the copy with EINTR.  May be NULL. */
    bool (*go_on)(void *owner, uint64_t files, uint64_t bytes);
    void *owner;
};

/* `notes` gets one line for each thing that was left out, not inert, and a last one if there were too
 * many.  After a failure the caller removes what is in `to`. */
int copytree_run(const struct copytree *copy, struct strings *notes, struct error *err);
