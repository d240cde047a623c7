#pragma once

/* What the commits of a branch do to files, and what of it can run on the owner's machine once it is merged
 * or checked out: the question that `cove diff` asks of files, with the same table (changes/classify.h). */

#include "changes/classify.h"

#include <stdint.h>

struct error;
struct shadow;

struct carried_file {
    char *path; /* bytes of the sandbox, as in the commit */
    struct classify_verdict verdict;
};

struct carried {
    struct carried_file *items; /* of class A; sorted, each path once */
    size_t len, cap;
    uint64_t build; /* paths of class B */
    uint64_t files; /* paths in all */
};

#define CARRIED_NONE ((struct carried){ 0 })
#define autocarried __attribute__((cleanup(carried_free)))

void carried_free(struct carried *carried);

/* Looks at each commit that leads to `tip` and that none of `mine` leads to, the earlier ones too: who
 * rebases or bisects checks them out.  `mine` is a list of lines "^HASH".  The contained git sees the
 * objects of `shadow`.  What is too much to be looked at is refused. */
int carried_find(const struct shadow *shadow, size_t digits, const char *tip, const char *mine,
                 struct carried *out, struct error *err);
