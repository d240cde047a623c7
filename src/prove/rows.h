#pragma once

/* What is tried, and how the host judges it. */

#include "prove/arm.h"
#include "prove/layers.h"

#include <stdbool.h>
#include <stddef.h>

struct limits;
struct plan;

/* One arm as a judge sees it; the plan is that of the sandbox in both. */
struct judged {
    const struct arm *arm;
    const struct plan *plan;
    const struct limits *limits; /* that the policy asks for */
};

struct row {
    const char *id;      /* of the hostile check that it stands for (tests/hostile/rows.tsv) */
    const char *attempt; /* the prober's name for it; NULL: nothing is tried, the host reads it */
    const char *words;   /* for people */
    unsigned layers;     /* bits of enum layer: any of them is enough; see row_layers() */
    /* What the host sees that must not be; NULL: nothing.  The caller frees. */
    char *(*seen)(const struct judged *judged, const struct row *row);
    int token;                                    /* for seen_token */
    const char *link;                             /* for seen_link: what a descriptor must not lead to */
    bool scoped;                                  /* what Landlock says about it came with its sixth version */
    bool (*applies)(const struct judged *judged); /* of what is only read; NULL: always */
    const char *absent; /* why it may not apply under this plan; NULL: only for want of its canary */
};

extern const struct row rows[];
extern const size_t rows_len;

/* The walls that this row has on a kernel with that version of Landlock.  Never none. */
unsigned row_layers(const struct row *row, int landlock_abi);

enum held { HELD, HELD_NOT, HELD_UNKNOWN };

struct verdict {
    enum held held;
    char *why; /* NULL if it is held */
};

/* What one arm showed of one row. */
struct showing {
    bool tried;
    int error;  /* the prober's own word for what came of it, 0: it worked; only to explain */
    char *seen; /* by the host; NULL: nothing */
};

/* While the arm lasts. */
void rows_look(const struct judged *judged, struct showing *out);

/* From both arms: an attempt that does not even work outside says nothing about the sandbox. */
void rows_judge(const struct showing *inside, const struct showing *outside, struct verdict *out);

void showings_free(struct showing *showings);
void verdicts_free(struct verdict *verdicts);
