#pragma once

#include <stdint.h>

struct error;
struct ids;

/* Something that is tried in a child, which is gone afterwards with all it has made: mounts, namespaces,
 * filters, rights that it gave up. */
struct trial {
    uint64_t namespaces;   /* CLONE_NEW*; 0: an ordinary child */
    const struct ids *ids; /* its ids in a new user namespace */
    int (*act)(const void *subject, struct error *err);
    const void *subject;
};

/* -1 and its error if the child could not be made or `act` failed. */
int trial_run(const struct trial *trial, struct error *err);
