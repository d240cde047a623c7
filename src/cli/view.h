#pragma once

#include "keeper/kept.h"

struct node;
struct text;

/* A kept sandbox as people and programs see it. */

/* What its directory holds, looked at now. */
struct view {
    bool changed;
    uint64_t space; /* bytes on disk */
};

void view_read(const struct kept_list *list, const struct kept *kept, bool with_space, struct view *out);

/* Its record with the state that holds now, and with "changed"; a broken one has "error". */
void view_node(const struct kept *kept, const struct view *view, struct node *out);

/* As one would type it, cut after some characters; not inert. */
void view_command(const struct record *record, size_t most, struct text *out);

/* "yes", "no", "applied", "?". */
const char *view_changes(const struct kept *kept, const struct view *view);

/* "3m", "2h", "5d"; "" without a date. */
void view_age(struct timespec since, struct text *out);

/* "512 B", "1.5 MiB". */
void view_space(uint64_t bytes, struct text *out);
