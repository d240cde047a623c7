#pragma once

#include "keeper/result.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct box;
struct explain;
struct limits;
struct outlet;
struct registry_places;
struct rules;

/* One command for a sandbox that was just cloned. */
struct keeper_run {
    const char *const *argv, *const *envp;
    const char *cwd;
    uint32_t uid, gid;           /* inside */
    uint32_t flags;              /* enum start_flags; START_TTY is added by `tty` */
    bool tty;                    /* its standard input and output are a pty */
    bool raw_terminal;           /* what it writes to the pty is not filtered (termfilter.h) */
    uint64_t timeout_ms;         /* 0: none */
    const struct limits *limits; /* NULL: none.  Those of control groups the box has already */
    uint64_t processes;          /* RLIMIT_NPROC, or 0 */
    int layers;                  /* the sandbox's directory, for what its limits say about disks; or -1 */
    int in, out, err;            /* the host's side, usually 0, 1, 2; -1: closed */
    int program;      /* a sealed memfd to run under the name argv[0]; -1 or 0: argv[0] is looked for */
    uid_t pipe_owner; /* who may open /dev/stdin and its like inside: the outside number of `uid` */
    /* Called once, with `owner`, when the command runs; may be NULL.  A failure ends the run. */
    int (*started)(void *owner, struct error *err);
    void *owner;
    struct explain *explain; /* takes the listener of START_EXPLAIN, else NULL */
    struct outlet *outlet;   /* the way out, by `rules`; NULL: there is none, and no answer either */
    const struct rules *rules;
    const struct reel *reel;                  /* what is recorded or served of it */
    const struct registry_places *registries; /* for what is proposed where it refuses; or NULL */
};

/* Starts the command and stays with it to the end: bytes, signals, terminal, time.  At the end
 * the whole sandbox is killed by its PID 1, what was written before is still passed on, and the
 * terminal is as it was.  -1 only for RESULT_FAILED, with `err` the same as result->error; the
 * result is filled in either way.
 *
 * The sandbox may still be setting itself up: START waits in the socket until PID 1 is there.
 *
 * When this returns every process of the sandbox is dead, but PID 1, our own, may still be on its
 * way out while the kernel takes the namespaces apart; box->pid is 0 if it was already reaped. */
int keeper_run(struct box *box, const struct keeper_run *run, struct result *result, struct error *err);

/* For main(), before anything is opened: puts /dev/null in the place of a standard descriptor
 * that is closed, because the next socket would take its number and become our "stderr". */
int keeper_stdio_guard(struct error *err);
