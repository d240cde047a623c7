#pragma once

#include <stdbool.h>

struct apply_result;
struct changed;
struct node;
struct review;

/* What came of `cove apply`. */
struct outcome {
    const struct changed *changed;
    const struct review *review;
    const struct apply_result *results; /* one for each change */
    int tree;                           /* where they went */
    bool dry_run;
    bool at_home; /* it is the workspace itself that they went to */
};

/* A line for each change, and on standard error both sides of each conflict. */
void outcome_print(const struct outcome *outcome);

/* The same for programs. */
void outcome_add_nodes(const struct outcome *outcome, struct node *root);

/* Nothing was refused, in conflict or failed. */
bool outcome_is_clean(const struct outcome *outcome);
