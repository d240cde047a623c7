#pragma once

#include <stddef.h>

struct error;

/* The content of the regular file `name` below `dir`, of at most `most` bytes with no NUL in it;
 * NULL if there is none such.  A link at the end of the name is not followed.  The caller frees. */
char *file_text(int dir, const char *name, size_t most);

/* Writes what somebody asked for under that name: to a new file that takes the name at once and whole, readable
 * for its owner only; a name that is no regular file itself (a link such as /dev/stdout, a FIFO) is kept, and
 * added to.
 * "-" is standard output. */
int file_deliver(const char *path, const void *bytes, size_t len, struct error *err);

/* Whether that would work, as far as can be told before: nobody wants to hear of it after an hour. */
int file_deliverable(const char *path, struct error *err);
