#pragma once

#include <stdbool.h>
#include <stdio.h>

struct text;

/* Patches on a terminal: every line inert, nothing in it unseen, lines that came and went in colour unless
 * $NO_COLOR says otherwise.  Elsewhere the bytes as they are. */
void paint_patch(FILE *out, const struct text *patch);

/* As on a terminal whatever `out` is, but colour only there; at most `most` lines, and then how many more. */
void paint_inert(FILE *out, const struct text *patch, size_t most);

bool paint_is_terminal(FILE *out);
