#pragma once

struct error;

/* Runs `work` in a process of its own that shares our memory, while we sleep until it is over: nothing is
 * copied for it, and its results are simply there; its namespaces, its root and its descriptors go with it.
 * `what` names the process if it dies over it. */
int beside_run(int (*work)(void *argument, struct error *err), void *argument, const char *what,
               struct error *err);
