#pragma once

#include <stdbool.h>

struct change;
struct changed;
struct changes;
struct node;
struct review;
struct review_fold;
struct review_item;
struct text;

/* What the review found, in words. */

/* The path and all that is to be said of the change, as one inert line without its end. */
void remark_add(const struct change *change, const struct review_item *item, struct text *out);

/* Whether there is more to say than the path. */
bool remark_is_needed(const struct change *change, const struct review_item *item);

/* "node_modules/: 12 files, 3.4 MiB". */
void remark_add_fold(const struct review_fold *fold, struct text *out);

/* Says on standard error which paths the owner changed too, and, on a terminal, how many changes run. */
void remark_summary(const struct changes *changes, const struct review *review);

/* Members of a JSON object: of one change, and of all. */
void remark_node(const struct change *change, const struct review_item *item, struct node *out);
void remark_node_all(const struct review *review, struct node *out);
