#pragma once

/* A struct as a mapping of JSON: one table for both directions. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct node;

/* A number that is not there: null in JSON. */
#define MEMBER_NO_NUMBER UINT64_MAX

/* A kind of value.  `read` fills what `into` points at, false if the node has another form; `write` makes a
 * scalar, a list or a mapping of the empty node `out`. */
struct member_kind {
    const char *what; /* for messages: "must be ..." */
    bool (*read)(const struct node *node, void *into);
    void (*write)(const void *from, struct node *out);
};

struct member {
    const char *key;
    const struct member_kind *kind;
    size_t at;  /* offset in the struct */
    bool later; /* what was written earlier may not have it */
};

extern const struct member_kind member_text, /* char *, which the struct owns */
    member_text_or_null,                     /* the same; NULL: null */
    member_list,                             /* struct strings */
    member_number,                           /* uint64_t */
    member_number_or_null,                   /* the same; MEMBER_NO_NUMBER: null */
    member_wide,                             /* uint64_t, as text: a number of JSON keeps 53 bits */
    member_flag,                             /* bool */
    member_date,                             /* struct timespec, to the millisecond */
    member_date_or_null;                     /* the same; tv_sec 0: null */

/* The first member that is missing or has another form; NULL if all are there.  What was read before it
 * stays in the struct, for its owner to free. */
const struct member *members_read(const struct member *rows, size_t count, const struct node *map, void *into);

/* `out` becomes a mapping. */
void members_write(const struct member *rows, size_t count, const void *from, struct node *out);
