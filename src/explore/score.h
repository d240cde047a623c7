#pragma once

/* What a score command says. */

#include <stdbool.h>

/* The whole text must be one finite decimal number, with blanks around it at most: no hexadecimal, no "nan". */
bool score_read(const char *text, double *out);

/* As few digits as tell it apart from every other.  The caller frees. */
char *score_write(double score);
