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
    /* Socket over which MESSAGE_GO comes when ids are mapped and, from the mounter with the root
     * beside it, when that is assembled; -1: do both yourself. */
    int go;
};

/* In the clone: carries out its steps and becomes PID 1's program. */
_Noreturn void clone_main(const struct clone_context *context);
