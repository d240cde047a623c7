#pragma once

/* Things of the host that a sandbox must not reach, made for one try and gone after it.  Each has a random
 * token of its own: where the token turns up, the canary was reached.  None of them is anybody's real secret.
 */

#include "base/array.h"

#include <stdbool.h>
#include <sys/types.h>

struct error;

enum token {
    TOKEN_FILE,
    TOKEN_ENVIRONMENT,
    TOKEN_MEMORY,
    TOKEN_SHARED,
    TOKEN_QUEUE,
    TOKEN_DESCRIPTOR,
    TOKEN_KEY,
    TOKEN_VARIABLE,
    TOKEN_MARK, /* what the prober itself writes: names its files, fills its messages */
    TOKEN_COUNT,
};

enum { TOKEN_LENGTH = 32 };

/* A process of the owner's that anybody who may at all can signal, trace and read. */
struct canary_process {
    pid_t pid;
    int hold; /* it ends when this is closed */
    char address[20];
};

struct canaries {
    char tokens[TOKEN_COUNT][TOKEN_LENGTH + 1];
    int dir;                              /* closed to others; holds "read", "write" and "socket" */
    char *path;                           /* of it */
    struct canary_process peer, stand_in; /* the second stands for PID 1 where there is no sandbox */
    int abstract, socket, tcp, udp;       /* listeners, -1: could not be made */
    int tcp_port, udp_port;
    int shared; /* SysV id, -1: none; it is gone when we are */
    void *attached;
    char *queue;    /* name of a message queue; NULL: none */
    int descriptor; /* whoever is started next inherits it */
    int master, terminal;
};

#define CANARIES_NONE                                                                                          \
    ((struct canaries){ .dir = -1,                                                                             \
                        .peer = { .hold = -1 },                                                                \
                        .stand_in = { .hold = -1 },                                                            \
                        .abstract = -1,                                                                        \
                        .socket = -1,                                                                          \
                        .tcp = -1,                                                                             \
                        .udp = -1,                                                                             \
                        .shared = -1,                                                                          \
                        .descriptor = -1,                                                                      \
                        .master = -1,                                                                          \
                        .terminal = -1 })

/* Makes them below `parent`, whose path is `above`, in a new directory `name`; `prober` is a handle on the
 * program and `variable` the token of the variable that was set before.  What this host cannot make is left
 * out, and then the prober says so; an error only means that there are none at all. */
int canaries_make(int parent, const char *above, const char *name, int prober, const char *variable,
                  struct canaries *out, struct error *err);

/* Takes everything away but the files, which lie in their maker's directory. */
void canaries_free(struct canaries *canaries);

/* For a process that is about to become the prober, or its keeper: the terminal and the key, which are not
 * inherited otherwise. */
void canaries_take_along(const struct canaries *canaries);

/* Where they are, as the prober is told. */
void canaries_words(const struct canaries *canaries, const char *variable, struct strings *out);

/* What the host sees afterwards. */
bool canaries_file_changed(const struct canaries *canaries);
bool canaries_connected(int listener);
bool canaries_received(const struct canaries *canaries);
bool canaries_terminal_written(const struct canaries *canaries);
bool canaries_terminal_typed(const struct canaries *canaries);

/* Random, lower-case hexadecimal. */
int token_make(char out[TOKEN_LENGTH + 1], struct error *err);
