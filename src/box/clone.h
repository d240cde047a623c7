#pragma once

struct error;
struct host;
struct plan;

/* What the clone needs to know of its parent's side. */
struct clone_context {
    const struct plan *plan;
    const struct host *host;
    const char *id;
    int init_fd; /* its own end */
    int program; /* the sealed memfd of the init program */
    /* Socket over which MESSAGE_GO comes: when others have mapped our ids, and then from root's
     * mounter (executor_mount); -1: neither. */
    int go;
};

/* In the clone: carries out its steps and becomes PID 1's program. */
_Noreturn void clone_main(const struct clone_context *context);
