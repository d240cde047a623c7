#pragma once

/* Exchanges as rules that mock them, in a policy file that a person can change. */

#include <stdbool.h>

struct take;
struct text;

/* Why there can be no such rule; NULL: there can. */
const char *mockfile_refuses(const struct take *take);

/* What a rule tells apart: of exchanges with the same there is one.  It knows no query and no body. */
char *mockfile_key(const struct take *take);

/* Whether the answer's body can stand in the rule itself. */
bool mockfile_is_inline(const struct take *take);

/* How a file with the body is best called in the end: ".json". */
const char *mockfile_ending(const struct take *take);

/* What stands above all rules; then each of them, with its body in `file` unless that is NULL. */
void mockfile_begin(struct text *out);
void mockfile_add(const struct take *take, const char *file, struct text *out);
