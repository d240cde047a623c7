#pragma once

#include "box/network.h"
#include "limits/cgroup.h"
#include "limits/freezer.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct error;
struct host;
struct made;
struct message;
struct orders;
struct plan;

/* A sandbox: PID 1 as seen from outside (0 once it was reaped), and our end of its socket. */
struct box {
    pid_t pid;
    int pidfd;
    int init_fd;
    int go;                /* until it is started: over which it hears that its orders are there */
    struct orders *orders; /* until it is verified */
    struct made *mounted;  /* once it is verified: what is mounted in it (box/orders.h) */
    uint64_t namespaces;
    bool own_mounter;       /* an ordinary user's */
    struct cgroup cgroup;   /* that it is in */
    struct network network; /* once it is verified: where what it sends arrives */
    struct freezer freezer;
};

#define BOX_NONE ((struct box){ .pid = -1, .pidfd = -1, .init_fd = -1, .go = -1, .network = NETWORK_CLOSED })

/* Clones, for a plan that is still to come: what takes the kernel longest, a network of its own, is
 * made while we think.  With `own_mounter` it will assemble its root itself, else we do it as root.  It begins
 * in the v2 control group `group`, if that is not -1.  A box that is not started ends with its keeper. */
int box_open(uint64_t namespaces, bool own_mounter, int group, struct box *out, struct error *err);

/* The same, in a group that can be frozen, if one can be made. */
int box_open_freezable(uint64_t namespaces, bool own_mounter, struct box *out, struct error *err);

/* Carries the plan out, in a box that was opened for it or else in a new one.  Returns once its ids
 * are mapped: what goes wrong after that comes as MESSAGE_FAILED over init_fd. */
int box_start(const struct plan *plan, const struct host *host, const char *id, struct box *box,
              struct error *err);

/* At MESSAGE_MOUNTED, whose descriptors it takes: looks whether the sandbox has the mounts that were made for
 * it, each with its flags, and no other.  Without that no command may be asked for. */
int box_verify(struct box *box, const struct message *mounted, int *fds, size_t count, struct error *err);

/* After that: nothing is compared with the orders any more. */
void box_drop_orders(struct box *box);

/* Kills everything in the sandbox, waits for its end, removes its control groups, and closes. */
void box_end(struct box *box);

/* Frees what is known of a box that ends without us. */
void box_forget(struct box *box);
