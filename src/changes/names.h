#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Judgements on names and link targets, which are bytes of a hostile program.  Pure. */

/* Control characters, also those that reorder a line or have no width, bytes that are no UTF-8, letters of
 * two scripts, a dash in front, a blank at the end: what a person or a script would read as something else. */
bool name_is_odd(const char *name);

/* Latin letters beside Cyrillic ones, or if asked for, Greek ones, which many look alike. */
bool name_mixes_scripts(const char *text, size_t len, bool greek);

/* What is left of a name after everything that some file system or reader passes over: case, accents,
 * characters without width, full-width forms, the script of letters that look alike, bytes that are no UTF-8.
 * Two names with the same rest are twins. It rather calls too many twins than too few, but knows Latin, Greek
 * and Cyrillic only.  The caller frees. */
char *name_fold(const char *name);

enum link_place {
    LINK_INSIDE,   /* relative, and stays below the workspace */
    LINK_ABSOLUTE, /* absolute, and below the workspace as it is called inside */
    LINK_OUT,
};

/* Where `target` leads from a link at `path` (relative to the workspace), by the text alone.  A path
 * that leaves the workspace and comes back has left it: outside, it leads elsewhere.  So has one with
 * `..` behind a name, as in `a/../b`. */
enum link_place link_judge(const char *path, const char *target, const char *inside);
