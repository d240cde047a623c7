#pragma once

/* A control group that can stop every process of a sandbox at once, and lets nobody in it undo that.  In the
 * one tree of v2 it needs no controller, and who is in it can still be killed.  In v1 there is a tree for it,
 * and nobody dies there who is frozen: whoever kills must let them go on as well. */

#include <stdbool.h>

struct strings;

struct freezer {
    char *dir; /* NULL: there is none */
    bool v1;
    bool own; /* made for this alone; else a group that is there for limits */
};

#define FREEZER_NONE ((struct freezer){ 0 })

void freezer_free(struct freezer *freezer);

/* A group for a sandbox that is to come, below our own, where we may make one; else none.  Who is told the id
 * of the sandbox by its name learns nothing, so that has none. */
void freezer_make(struct freezer *out);

/* One that is the group of the sandbox's limits already; it stays whoever's it is. */
void freezer_borrow(const char *dir, struct freezer *out);

/* V2: a handle to clone into, or -1.  The caller closes it. */
int freezer_open(const struct freezer *freezer);

/* V1: the file that a process writes "0" to, as cgroup_joins(). */
void freezer_joins(const struct freezer *freezer, struct strings *out);

/* Freezes everybody in the group, or lets them go on, and waits for that.  False: it cannot, and nobody is
 * frozen. */
bool freezer_set(const struct freezer *freezer, bool frozen);

/* Removes the group, waiting for the last process to leave. */
void freezer_remove(const struct freezer *freezer, unsigned patience_ms);

/* Removes groups beside it that somebody left.  Of v1, who was killed while they were frozen may die. */
void freezer_sweep(const struct freezer *freezer);
