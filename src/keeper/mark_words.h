#pragma once

#include <stdbool.h>

struct mark;
struct words;

/* The words of a BEGIN (init/mark.h), which may be any bytes.  False: it is none. */
bool mark_words(const struct mark *mark, struct words *out);
