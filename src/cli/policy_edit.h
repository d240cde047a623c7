#pragma once

struct error;
struct rule;
struct text;

/* One more rule in the text of a policy file.  Every line that is there stays as it is, comments too; the
 * result was read again and says what the file said and the rule, nothing else.  A file that is written in a
 * way in which no place for it is found is refused, with the line to add.  Returns 1, and nothing in `out`, if
 * the file has the rule already.  `old` has no byte if there is no file. */
int policy_edit_add(const char *shown, const struct text *old, const struct rule *rule, struct text *out,
                    struct error *err);
