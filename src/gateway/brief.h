#pragma once

/* What a keeper tells its gateway before that gives up everything: a line of JSON about it, and one for each
 * rule.  Both are of one build, and neither reads what another has written. */

#include "spec/network.h"

#include <stdbool.h>
#include <stddef.h>

struct error;
struct rules;
struct text;

enum { BRIEF_MAX = 64 << 20 };

struct brief {
    unsigned generation;           /* how many gateways of this sandbox there were before */
    bool died;                     /* the last one did, with what it had counted of rates */
    bool record_secrets;           /* with a record: as they are */
    struct amounts spent;          /* by them */
    char sandbox[16];              /* by which its owner names it, if it stays; else empty */
    uint64_t *bytes;               /* and of each rule's; NULL: none */
    const struct rule_list *hints; /* of struct rules, as they are written; NULL: none */
};

void brief_write(const struct brief *brief, const struct rules *rules, struct text *out);

/* `rules` and `bytes` are the caller's, also after a failure. */
int brief_read(const char *bytes, struct brief *brief, struct rules *rules, struct error *err);
