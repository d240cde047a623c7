#pragma once

#include <stdbool.h>

/* Judgements on names and link targets, which are bytes of a hostile program.  Pure. */

/* Control characters, also those that reorder a line, bytes that are no UTF-8, a dash in front, a
 * blank at the end: what a person or a script would read as something else. */
bool name_is_odd(const char *name);

/* What is left of a name after everything that some file system or reader passes over: case, accents,
 * characters without width, full-width forms, bytes that are no UTF-8.  Two names with the same rest are twins.
 * It rather calls too many twins than too few, but knows Latin, Greek and Cyrillic only.  The caller frees. */
char *name_fold(const char *name);

enum link_place {
    LINK_INSIDE,   /* relative, and stays below the workspace */
    LINK_ABSOLUTE, /* absolute, and below the workspace as it is called inside */
    LINK_OUT,
};

/* Where `target` leads from a link at `path` (relative to the workspace), by the text alone.  A path
 * that leaves the workspace and comes back has left it: outside, it leads elsewhere.  One that goes up
 * again behind a name may have: that name can be a link. */
enum link_place link_judge(const char *path, const char *target, const char *inside);
