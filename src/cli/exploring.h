#pragma once

/* The queue of `cove explore`: at most so many tries at once, each from its fork to its line in the results. */

#include "cli/trying.h"
#include "explore/admit.h"
#include "explore/results.h"

#include <signal.h>
#include <stdbool.h>

struct error;

enum explore_keep { KEEP_WINNER, KEEP_ALL, KEEP_NONE };

struct exploring {
    const char *from;     /* what is forked */
    struct trying trying; /* what is done with each; `variables` is empty */
    struct strings tasks; /* lines; none: there are no tasks */
    uint64_t count;       /* tries, of each task */
    size_t jobs;          /* at once, at most */
    uint64_t retries;     /* of one that ended with another code than 0 */
    enum explore_keep keep;
    struct admission admission;
    struct results results;
    int results_fd;
    char *label; /* that all its sandboxes have */
    bool progress;
    int signals; /* where they are read */
    sigset_t old_mask;

    /* Given: */
    int signal;  /* that ended it early; 0: none */
    bool untidy; /* a sandbox could not be removed */
};

/* From here on SIGINT, SIGTERM and SIGHUP end the queue, not the process: call it before anything is made. */
int exploring_listen(struct exploring *exploring, struct error *err);

/* Runs what is not in the results yet.  Afterwards no process of it is left, and of sandboxes those that --keep
 * wants.  After a signal, if it is untidy, and after a failure of ours (-1) there may be more of them:
 * exploring_sweep(). */
int exploring_run(struct exploring *exploring, struct error *err);

/* Removes the sandboxes with this label, but for those that the results and `keep` want. */
int exploring_sweep(const char *label, const struct results *results, enum explore_keep keep,
                    struct error *err);
