#pragma once

/* All processes of a sandbox at rest, for the moment in which its files are read: by the kernel's freezer where
 * the sandbox has a group that it can freeze, else by signals. */

#include "init/protocol.h"

#include <stdbool.h>
#include <stddef.h>

struct box;
struct error;

struct rest {
    struct box *box;
    /* A message of PID 1 that was already on its way; false: it is out of place.  Descriptors that it does not
     * take are closed afterwards. */
    bool (*other)(void *owner, const struct message *message, int *fds, size_t count);
    void *owner;
    bool by_group;
};

/* Comes back when no thread runs any more.  1: one could not be stopped, and all go on; -1: the sandbox is
 * lost. A keeper that dies meanwhile takes everybody along, stopped or not. */
int rest_begin(struct rest *rest, struct error *err);

/* -1: the sandbox is lost. */
int rest_end(const struct rest *rest, struct error *err);
