#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Lines that one text has and another has not, wherever they stand: without what only moved. */

typedef bool lines_wanted(const char *line, size_t len);
typedef void lines_visit(void *owner, const char *line, size_t len);

/* Calls `visit` for each line of `new` that is `wanted` and that `old` has nowhere; without its newline. */
void lines_added(const char *old, size_t old_len, const char *new, size_t new_len, lines_wanted *wanted,
                 lines_visit *visit, void *owner);
