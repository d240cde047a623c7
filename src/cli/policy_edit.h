#pragma once

#include <stdbool.h>

struct error;
struct node;
struct rule;
struct text;

/* One more rule in the text of a policy file.  Every line that is there stays as it is, comments too; the
 * result was read again and says what the file said and the rule, nothing else.  A file that is written in a
 * way in which no place for it is found is refused, with the line to add.  Returns 1, and nothing in `out`, if
 * the file has the rule already.  `old` has no byte if there is no file. */
int policy_edit_add(const char *shown, const struct text *old, const struct rule *rule, struct text *out,
                    struct error *err);

/* The same without the rules that say just this, of any address unless `rule` has one: the rest stays as it is.
 * Returns 1, and nothing in `out`, if the file has none. */
int policy_edit_remove(const char *shown, const struct text *old, const struct rule *rule, struct text *out,
                       struct error *err);

/* Each rule of the text of a policy file; false: it cannot be read. */
bool policy_edit_each(const struct text *old, void (*take)(const struct rule *rule, unsigned line, void *owner),
                      void *owner);
