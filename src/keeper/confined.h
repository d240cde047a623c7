#pragma once

/* One program of the host, run for ourselves in a sandbox that is thrown away afterwards: what
 * reads bytes that a hostile program wrote (git above all) never runs outside of one. */

#include "keeper/result.h"
#include "spec/spec.h"

#include <stddef.h>
#include <stdint.h>

struct host;

/* A directory of the host that it sees. */
struct confined_tree {
    int at;             /* `source` counts from here: a handle, or AT_FDCWD */
    const char *source; /* "" or "." is the handle itself */
    const char *target; /* inside, absolute; below /mnt nothing else is */
    enum tree_mode mode;
};

struct confined {
    const char *const *argv; /* the program by its absolute path; NULL at the end */
    const char *const *env;  /* the whole environment; NULL: none */
    const char *cwd;         /* inside; NULL: "/" */
    const char *user;        /* NUMBER:NUMBER, who it is inside, if we are root; NULL: who we are */
    const struct confined_tree *trees;
    size_t tree_count;
    enum profile profile; /* PROFILE_STRICT unless it has to build and debug */
    uint64_t timeout_ms;  /* 0: none */
    uint64_t output_most; /* bytes that may be written to `out` or `err` if they are files; 0: no bound */
    int in, out, err;     /* -1: closed */
    int program;          /* a program of ours that is run instead, as in struct keeper_run; 0 or -1: none */
};

/* Runs it to its end: programs and libraries of this machine, no network, the trees and nothing
 * else of the owner's, all guards.  What it changes in a TREE_COW tree is gone when this returns, as
 * is everything else it did.  -1 if the sandbox could not be had, or did not last; what became of the program
 * is in the result. */
int confined_run(const struct host *host, const struct confined *what, struct result *result,
                 struct error *err);

/* The same for a program that has to succeed: -1 as well if it was ended, or exited with anything
 * but 0.  `doing` is for the message, to which the last lines of what it wrote to `what->err` (a
 * file that can be read) is added, inert. */
int confined_succeed(const struct host *host, const struct confined *what, const char *doing,
                     struct error *err);
