#pragma once

/* Brings one path, or the whole layer, to the host. */

#include "keeper/live_judge.h"

enum bring_kind {
    BRING_WAITS,    /* for consent */
    BRING_GIT,      /* git's own: commits come home by cove apply, these files never do */
    BRING_CONFLICT, /* the owner's */
    BRING_FAILED,   /* could not be brought, or never is */
    BRING_KINDS,
};

/* Something that did not go home, at the end. */
struct bring_rest {
    enum bring_kind kind;
    char *path, *why;
};

struct bring_rests {
    struct bring_rest *items;
    size_t len, cap;
};

struct bring {
    struct live_sides sides;
    struct known_paths known;
    int prints; /* what we put is noted here; -1: nowhere */
    size_t places;
    uint64_t brought;          /* paths, each once */
    bool (*stop)(void *owner); /* asked between files: true, and nothing more is brought */
    void *owner;
};

enum bring_outcome {
    BRING_DONE,
    BRING_AGAIN, /* it was written to meanwhile, or somebody else brings something */
};

/* `below`: of a directory also what is in it.  `patient`: a file that is being written to is left for
 * another time; otherwise only if it changed where it was copied. */
enum bring_outcome bring_path(struct bring *bring, const char *path, bool below, bool patient);

/* Whether the layer has another state of it than was last looked at. */
bool bring_is_due(const struct bring *bring, const struct known *known);

/* Whether it is a directory in the place of one that the host has: what it lacks was removed, and nothing in
 * the layer but this directory says so. */
bool bring_replaces(const struct bring *bring, const char *path);

/* Everything, when nobody writes any more; what is left is listed, as far as there is room, and counted. */
int bring_all(struct bring *bring, struct bring_rests *rests, uint64_t counts[BRING_KINDS], struct error *err);
