#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct error;
struct host;
struct orders;
struct plan;

/* A sandbox: PID 1 as seen from outside (0 once it was reaped), and our end of its socket. */
struct box {
    pid_t pid;
    int pidfd;
    int init_fd;
    int go;                /* until it is started: over which it hears that its orders are there */
    struct orders *orders; /* until it is started */
    uint64_t namespaces;
    bool own_mounter; /* an ordinary user's */
};

#define BOX_NONE ((struct box){ .pid = -1, .pidfd = -1, .init_fd = -1, .go = -1 })

/* Clones, for a plan that is still to come: what takes the kernel longest, a network of its own, is
 * made while we think.  With `own_mounter` it will assemble its root itself, else we do it as root.  A
 * box that is not started ends with its keeper. */
int box_open(uint64_t namespaces, bool own_mounter, struct box *out, struct error *err);

/* Carries the plan out, in a box that was opened for it or else in a new one.  Returns once its ids
 * are mapped: what goes wrong after that comes as MESSAGE_FAILED over init_fd. */
int box_start(const struct plan *plan, const struct host *host, const char *id, struct box *box,
              struct error *err);

/* Kills everything in the sandbox, waits for its end, and closes. */
void box_end(struct box *box);
