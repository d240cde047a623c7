#pragma once

/* What `cove diff` and `cove apply` do about the git repository of a workspace. */

#include <stdbool.h>
#include <stdint.h>

struct changed;
struct error;
struct node;
struct run_options;
struct strings;
struct text;

/* Prints git's part of a diff: how much of its own `state` is not shown, what was changed in a
 * repository outside of the workspace, and the commits.  Every line begins with `prefix`.  What cannot be
 * read is a warning: the rest of the diff is right without it. */
void commits_print(const struct changed *changed, uint64_t state, const char *prefix);

/* The same for programs: "git": {"state", "commits": [...]}. */
void commits_add_node(const struct changed *changed, uint64_t state, struct node *root);

/* Whether the owner has all commits of the sandbox; `state` is how much of git's own it changed. */
bool commits_are_home(const struct changed *changed, uint64_t state);

struct commits_wish {
    const struct run_options *options;
    const struct strings *autorun; /* paths, as the changes have them, whose acting was allowed */
    struct node *told;             /* takes what came of it; NULL: it is printed */
};

/* Brings the commits home, unless they were not asked for.  What acts by merely being there is asked for,
 * unless it was allowed.  *clean becomes false if some were refused. */
int commits_apply(const struct changed *changed, const struct commits_wish *wish, bool *clean,
                  struct error *err);
