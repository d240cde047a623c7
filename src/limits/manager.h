#pragma once

/* A control group from the service manager, the user's own (systemd --user) or root's: for who may not move a
 * process into the part of the tree that is theirs, as in a session over ssh, and because a manager takes
 * controllers back from groups that it does not know. */

#include "limits/cgroup.h"

/* Asks for the scope cove-ID around `pid`, with the limits, and waits until the process is in it.  The manager
 * removes it when nobody is in it any more. */
int manager_scope(const struct limits *limits, const char *id, pid_t pid, struct cgroup *out,
                  struct error *err);

/* Reads messages until one is the answer to the call. */
int manager_answer(int fd, struct error *err);

/* The call as bytes: for tests. */
void manager_call(const struct limits *limits, const char *id, pid_t pid, struct text *out);
