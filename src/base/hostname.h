#pragma once

/* Who a connection is for: a name or an address, in the one form that is compared, asked for, sent and
 * recorded.
 *
 * A name is in lower case, without the dot at its end, of at most 253 bytes; its labels have 1 to 63 letters,
 * digits and hyphens, none at either end.  Names of other scripts are written as their xn-- form, which is a
 * name like any other and equal to nothing else.  A name whose last label is a number is none. */

#include "base/address.h"

enum { HOSTNAME_SIZE = 254 }; /* of a name, with the zero */

struct hostname {
    char text[HOSTNAME_SIZE]; /* the name, or the address as it is usually written */
    struct address address;   /* of length 0 for a name */
};

#define HOSTNAME_NONE ((struct hostname){ 0 })

/* Takes any spelling of one, `len` bytes of which none is believed.  NULL, or why it is refused, as the end of
 * a sentence that begins with the host; `out` is then empty. */
const char *hostname_read(const char *bytes, size_t len, struct hostname *out);

static inline bool hostname_is_address(const struct hostname *host)
{
    return host->address.len != 0;
}

/* A name that means something else on every machine or only on this one (localhost, a single label, .local) or
 * that leads to a cloud's credentials.  No such name is ever asked for outside. */
bool hostname_is_local(const struct hostname *host);

/* Patterns: a name, an address, "*." and a name for all names below it (not itself), or "*" for all names. */

/* Checks one and gives its form; NULL, or why it is refused, in the same way. */
const char *hostname_read_pattern(const char *bytes, size_t len, char out[HOSTNAME_SIZE + 2]);

bool hostname_matches(const char *pattern, const struct hostname *host);

/* True if whatever matches `pattern` matches `other` as well. */
bool hostname_pattern_within(const char *pattern, const char *other);

/* A pattern for everybody's names: "*", or names below a suffix under which anybody can have theirs (*.com,
 * *.co.uk, *.github.io).  Of the last kind only well-known ones are known to us. */
bool hostname_pattern_is_broad(const char *pattern);
