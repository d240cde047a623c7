#pragma once

#include <stddef.h>

struct error;
struct text;

/* The content of the regular file `name` below `dir`, of at most `most` bytes with no NUL in it;
 * NULL if there is none such.  A link at the end of the name is not followed.  The caller frees. */
char *file_text(int dir, const char *name, size_t most);

/* The same of one that is open, from where it stands. */
char *file_rest(int fd, size_t most);

/* Adds what is left of it, bytes of any kind, until `out` has more than `most`: then 1.  -1 and errno: it
 * cannot be read. */
int file_add_rest(int fd, size_t most, struct text *out);

/* Writes all of it, however often a signal comes.  -1 and errno: not all. */
int file_put(int fd, const char *bytes, size_t len);
