#pragma once

/* Tries on this host, with one plan, whether a sandbox holds.
 *
 *     proving_set_variable(&proving, err)        before the host's environment is read
 *     proving_begin(&proving, host, err)
 *     proving_add_program(&proving, trees, err)  before the plan is made of them
 *     proving_run(&proving, host, plan, verdicts, err)
 *     proving_end(&proving)
 *
 * What is tried and how it is judged: rows.h.  Nothing of the owner's is touched. */

#include "base/array.h"
#include "prove/rows.h"
#include "store/store.h"

struct error;
struct host;
struct limits;
struct plan;
struct trees;

struct proving {
    struct sandbox_dir dir; /* where program and canaries lie; gone at the end */
    char *path;             /* of it */
    int program;            /* a handle on the prober */
    char token[TOKEN_LENGTH + 1];
    struct arm inside, outside;
    const struct limits *limits; /* that must be in force; the caller's, who sets it before the run */
};

#define PROVING_NONE                                                                                           \
    ((struct proving){ .dir = SANDBOX_DIR_NONE, .program = -1, .inside = ARM_NONE, .outside = ARM_NONE })

int proving_set_variable(struct proving *proving, struct error *err);
int proving_begin(struct proving *proving, const struct host *host, struct error *err);
int proving_add_program(const struct proving *proving, struct trees *trees, struct error *err);

/* One verdict a row; the command of the plan becomes the prober.  -1 if there is nothing to judge: the sandbox,
 * or the prober on the host, could not be started. */
int proving_run(struct proving *proving, const struct host *host, struct plan *plan, struct verdict *verdicts,
                struct error *err);

/* Accepts PROVING_NONE. */
void proving_end(struct proving *proving);
