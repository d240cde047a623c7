#pragma once

#include "changes/changes.h"

#include <sys/stat.h>

struct text;

/* What overlayfs notes in the upper directory: white-outs, and extended attributes.  Only attributes
 * of the one kind that the kernel obeyed are read. */

enum { ORIGIN_MAX = 128 };

/* The file of the base that a file of the upper was copied from, as name_to_handle_at() names it. */
struct origin {
    int type;
    unsigned len;
    unsigned char bytes[ORIGIN_MAX];
};

bool mark_is_whiteout(enum changes_marks marks, int dir, const char *name, const struct stat *status);

/* A directory that hides everything of the base below its path. */
bool mark_is_opaque(enum changes_marks marks, int dir, const char *name);

/* It is a copy of something of the base. */
bool mark_has_origin(enum changes_marks marks, int dir, const char *name);

/* False if there is none, or none that says which file it was. */
bool mark_origin(enum changes_marks marks, int dir, const char *name, struct origin *out);

/* The last one without the file system: from the bytes of the attribute. */
bool mark_parse_origin(const unsigned char *bytes, size_t len, struct origin *out);
