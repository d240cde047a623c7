#pragma once

#include <stddef.h>

/* The content of the regular file `name` below `dir`, of at most `most` bytes with no NUL in it;
 * NULL if there is none such.  A link at the end of the name is not followed.  The caller frees. */
char *file_text(int dir, const char *name, size_t most);
