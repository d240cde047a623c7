#pragma once

/* A directory as a sandbox left it: the upper directory of its overlay over the base.  With no upper
 * it is the owner's own.
 *
 * The upper was written by a hostile program: one component after the other is opened by handle, no
 * link is followed, nothing but directories and regular files is opened.  A directory that was
 * renamed shows nothing of the base here. */

#include "base/array.h"
#include "changes/changes.h"

struct merged {
    int upper, base; /* directories; -1: there is none on this side */
    enum changes_marks marks;
};

#define MERGED_NONE ((struct merged){ .upper = -1, .base = -1 })
#define automerged __attribute__((cleanup(merged_close)))

void merged_close(struct merged *dir);

/* The directory `path` below `dir`, relative and with no ".."; "" is a copy of `dir`.  False if there
 * is none. */
bool merged_enter(const struct merged *dir, const char *path, struct merged *out);

enum merged_found { MERGED_FILE, MERGED_ABSENT, MERGED_ODD, MERGED_LARGE };

/* The bytes of the regular file `name`, which has no slash in it, with a NUL behind them that does not
 * count; the caller frees.  Anything but a regular file is odd, and so is one that cannot be read. */
enum merged_found merged_read(const struct merged *dir, const char *name, size_t most, char **out, size_t *len);

/* Adds the names in it, sorted.  False: more than `most`, or it cannot be read. */
bool merged_list(const struct merged *dir, size_t most, struct strings *out);
