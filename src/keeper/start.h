#pragma once

struct error;
struct keeper_run;

/* Our ends of the pipes of one command: -1 with a terminal. */
struct start_pipes {
    int in, out, err;
};

/* Sends START over init's socket.  The pipes are new and belong to the caller; nothing of
 * the host's own descriptors goes in.  A PID 1 that is already gone is no error here:
 * its death is. */
int start_send(int init_fd, const struct keeper_run *run, struct start_pipes *out_pipes, struct error *err);
