#pragma once

#include "keeper/loop.h"

#include <stddef.h>
#include <stdint.h>

struct host;
struct spec;
struct strings;
struct trees;

/* The supervisor of `cove run --explain`: what the command asked for and did not get.
 *
 * Every call that names a path or another end, and every call that the filter refuses, waits until it was
 * looked at here.  Refused calls get the answer they would have got anyway.  Calls with a path or address are
 * only noted and always go on: between our look and the kernel's own it can change, so a
 * look must never decide.  If this process dies all such calls fail with ENOSYS. */
struct explain_view {
    const struct spec *spec;
    const struct host *host;
    const struct trees *trees;      /* of the plan.  NULL: what a grant would meet is not asked */
    const char *workspace;          /* its root, or NULL */
    const struct strings *changes;  /* trees that a command may change inside: what is gone there it may
                                       have removed itself.  Or NULL */
    const struct strings *writable; /* see struct look_view */
    unsigned filter;                /* enum filter_kind */
};

struct finding {
    const char *how; /* "read", "write", "run", "connect", "look up" or "call" */
    char *subject;   /* a path, an address, or a system call with the argument that mattered */
    char *why;   /* "absent", "hidden", "read-only", "not permitted", "there is no network", or why the filter
                    refuses it */
    char *grant; /* the flag that would change it, or "not grantable ..." */
    uint64_t count;
};

struct findings {
    struct finding *items;
    size_t len, cap;
    uint64_t left_out; /* different ones that were not kept: see EXPLAIN_MAX */
};

enum { EXPLAIN_MAX = 5000 };

struct explain *explain_new(const struct explain_view *view);
void explain_free(struct explain *explain);

/* Takes the listener.  It may be anything: something that is no listener is closed. */
void explain_listen(struct explain *explain, struct loop *loop, int listener);
void explain_unlisten(struct explain *explain);

/* What was noted so far, sorted, each once. */
void explain_findings(const struct explain *explain, struct findings *out);
void findings_free(struct findings *findings);
