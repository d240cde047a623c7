#pragma once

/* Text that is not what it looks like ("Trojan Source"): characters that reorder a line or are not seen,
 * letters of another script, lines that overwrite themselves or go on behind the edge. */

#include <stddef.h>

struct text;

enum trick {
    TRICK_BIDI = 1 << 0,      /* reorders what stands beside it */
    TRICK_INVISIBLE = 1 << 1, /* has no width */
    TRICK_RETURN = 1 << 2,    /* a carriage return that ends no line */
    TRICK_CONTROL = 1 << 3,   /* other control characters, escape sequences with them */
    TRICK_LONG = 1 << 4,      /* a very long line */
    TRICK_NUL = 1 << 5,       /* in what is else text */
    TRICK_ENCODING = 1 << 6,  /* bytes that are no UTF-8 */
    TRICK_SCRIPTS = 1 << 7,   /* a word of Latin and Cyrillic letters */
};

enum { TRICK_LINE_MAX = 2000 /* bytes; longer is very long */ };

/* In lines of `new` that `old` does not have.  Both end with a NUL behind their last byte. */
unsigned tricks_added(const char *old, size_t old_len, const char *new, size_t new_len);

/* Of trick `bit`, counted from 0: "bidi", "characters that reorder the line"; NULL past the last. */
const char *trick_name(unsigned bit);
const char *trick_says(unsigned bit);

/* One line for a terminal: nothing in it acts, nothing in it is unseen, and it is not too long. */
void tricks_add_shown(struct text *out, const char *line, size_t len);
