#pragma once

/* A queue of tasks: a file of JSON lines, one task a line, each an object. */

#include "base/array.h"

#include <stddef.h>
#include <stdint.h>

struct error;

enum { TASKS_MAX = 100000, TASKS_BYTES_MAX = 256 << 20, TASK_LINE_MAX = 96 << 10 };

/* The lines of the file that hold something.  Each is checked; `shown` is for messages. */
int tasks_read(const char *bytes, size_t len, const char *shown, struct strings *out, struct error *err);

/* The variables that a try of it has: COVE_TASK (its number), COVE_TASK_JSON (the line), and COVE_TASK_KEY for
 * each KEY of the object, in upper case, that can be a name and whose value is a string, a number or a bool. */
void tasks_environment(uint64_t number, const char *line, struct strings *out);
