#pragma once

#include <stdbool.h>
#include <stdint.h>

struct orders;
struct processors;

/* What the clone knows when it begins. */
struct clone_context {
    const struct orders *orders; /* written when MESSAGE_GO comes */
    uint64_t namespaces;         /* that it is to have; all but the network's it has already */
    bool own_mounter;            /* it forks the mounter itself */
    struct processors *processors;
    int init_fd; /* its own end */
    /* Over which MESSAGE_GO comes: when the orders are there and ids, if others map them, are mapped;
     * and then from root's mounter (executor_mount). */
    int go;
};

/* In the clone: carries out its steps and becomes PID 1's program. */
_Noreturn void clone_main(const struct clone_context *context);
