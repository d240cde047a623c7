#pragma once

#include <sys/types.h>

struct error;
struct host;
struct plan;

/* A sandbox that runs: PID 1 as seen from outside (0 once it was reaped), and our end of its
 * socket. */
struct box {
    pid_t pid;
    int pidfd;
    int init_fd;
};

#define BOX_NONE ((struct box){ -1, -1, -1 })

/* Clones and carries the plan out.  Returns once the clone exists and its ids are mapped: what
 * goes wrong after that comes as MESSAGE_FAILED over init_fd. */
int box_start(const struct plan *plan, const struct host *host, const char *id, struct box *out,
              struct error *err);

/* Kills everything in the sandbox, waits for its end, and closes. */
void box_end(struct box *box);
