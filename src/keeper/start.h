#pragma once

#include "init/protocol.h"

#include <stddef.h>

struct error;
struct keeper_run;

/* Our ends of the pipes of one command: -1 with a terminal. */
struct start_pipes {
    int in, out, err;
};

/* A START that is ready to be sent, with what goes along. */
struct start_order {
    struct message message;
    int fds[PROTOCOL_FDS_MAX];
    size_t count;
};

#define START_ORDER_NONE ((struct start_order){ .fds = { -1, -1, -1, -1, -1, -1 } })

/* The pipes are new, and ours belong to the caller; nothing of the host's own descriptors goes in. */
int start_prepare(const struct keeper_run *run, struct start_order *out, struct start_pipes *out_pipes,
                  struct error *err);

/* Sends it over init's socket.  A PID 1 that is already gone is no error here: its death is. */
int start_send(int init_fd, struct start_order *order, struct error *err);
void start_drop(struct start_order *order);
