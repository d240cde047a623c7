#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct error;

/* A network namespace with loopback up and nothing else, made beside the mounts: it is the
 * slowest single part of a start, and another processor can do it meanwhile. */
struct network {
    pid_t pid;  /* of the process that makes it, -1: none */
    int fd;     /* the namespace, once that process is over */
    int failed; /* errno, 0: none */
};

#define NETWORK_NONE ((struct network){ -1, -1, 0 })

/* `elsewhere`: the caller has work of its own meanwhile and wants to keep its processor. */
int network_begin(struct network *network, bool elsewhere, struct error *err);

/* Waits for the namespace and enters it. */
int network_enter(struct network *network, struct error *err);
