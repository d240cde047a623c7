#pragma once

/* One try, and its score: what the processes do that `cove explore` forks for it.  Each begins with a sandbox
 * that has stopped and ends with one. */

#include "base/array.h"
#include "cli/scorefiles.h"

#include <stdint.h>

struct tried;

struct trying {
    const struct strings *argv; /* the command; NULL: `score` is */
    const char *score;          /* for sh -c */
    const struct strings *env;  /* that the owner wants, KEY=VALUE */
    struct strings variables;   /* of this try */
    const struct scorefiles *files;
    const char *diffs;                     /* a directory for what each try changed; NULL: none */
    const char *spec;                      /* the text of the sandbox's spec.json */
    uint64_t timeout_ms, score_timeout_ms; /* 0: none */
};

/* Runs the command in sandbox `id`, ends whatever it left running, and says what became of it. */
void trying_run(const struct trying *trying, const char *id, struct tried *out);

/* Runs the score command in `id`, a fork of what the try left.  `out` has what is known of the try. */
void trying_score(const struct trying *trying, const char *id, struct tried *out);

/* Without a score command the exit code of the try is its score. */
void trying_score_by_exit(struct tried *tried);
