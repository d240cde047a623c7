#pragma once

#include <stddef.h>

struct text;

/* The lines in which two texts differ, as the hunks of a unified diff ("@@ -1,3 +1,4 @@" and what
 * follows), with three lines of context.  Nothing is added when they are equal.  The work is bounded:
 * in texts that have very little in common a part may be shown as replaced as a whole. */
void linediff_hunks(const char *old, size_t old_len, const char *new, size_t new_len, struct text *out);

/* How many lines went and came. */
struct linediff_count {
    size_t removed, added;
};
struct linediff_count linediff_count(const char *old, size_t old_len, const char *new, size_t new_len);
