#pragma once

/* What the process that brings work home says at its end: fields that end with NUL.  It reads hostile files,
 * so what it says is as good as they are, and never more than text. */

#include <stdbool.h>
#include <stddef.h>

struct live_end;
struct text;

void live_report_add(const struct live_end *end, struct text *out);

/* False: it is not whole.  What was read until then is there all the same; live_end_free() in any case. */
bool live_report_parse(const char *bytes, size_t len, struct live_end *out);
void live_end_free(struct live_end *end);
