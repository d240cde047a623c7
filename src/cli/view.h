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
void view_words(const struct strings *argv, size_t most, struct text *out);
void view_command(const struct record *record, size_t most, struct text *out);

/* NAME=STATE of each, as it is now: what its keeper has written is of no use when there is no keeper. */
void view_services(const struct kept *kept, struct strings *out);

/* "running", and what does not although it should: "running, db ended (exit 1)"; not inert. */
void view_state(const struct kept *kept, struct text *out);

/* "yes", "no", "applied", "?". */
const char *view_changes(const struct kept *kept, const struct view *view);

/* "3m", "2h", "5d"; "" without a date. */
void view_age(struct timespec since, struct text *out);

/* "250us", "12.3ms", "1.5s", "3m05s", "2h03m". */
void view_took(uint64_t us, struct text *out);

/* "512 B", "1.5 MiB". */
void view_space(uint64_t bytes, struct text *out);
