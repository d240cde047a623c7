#pragma once

#include <stdbool.h>
#include <stddef.h>

struct text;

/* The path of a request as rules compare it: without its query, and with characters that need no escape
 * unescaped.  False for what two servers could read differently (`..`, `//`, an escaped slash, dot or percent
 * sign, `;`, a backslash, bytes that are no ASCII): no rule with paths has an opinion on that. */
bool path_plain(const char *raw, struct text *out);

/* As file names: `*` within one part, `**` for any number of parts. */
bool path_matches(const char *pattern, const char *plain);

/* The same for servers to whom case, and a slash at the end, mean nothing: for rules that deny. */
bool path_may_match(const char *pattern, const char *plain);

/* Whether everything that one pattern matches is matched by the other.  False also where that cannot be told.
 */
bool path_pattern_within(const char *inner, const char *outer);

/* Whether it can be used as a pattern: begins with a slash and is plain itself. */
bool path_is_pattern(const char *pattern);
