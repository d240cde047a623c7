/* A guard asleep: it waits for days, and needs no copy of the keeper's memory for that.  What it is about lies
 * in its variables, which its owner alone can read.
 *
 * Should: become the guard again when there is something to do.  Must not: do anything else. */

#include "keeper/guard_fds.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The machine may be short of memory for a while. */
enum { TRIES = 600, PAUSE_MS = 100 };

int main(int argc, char **argv, char **variables)
{
    char name[] = GUARD_NAME, *words[] = { name, NULL };
    struct pollfd events[] = { { .fd = argc > 1 ? GUARD_VERDICT : -1, .events = POLLIN },
                               { .fd = GUARD_PIDFD, .events = POLLIN } };

    (void)argv;
    prctl(PR_SET_NAME, name);
    while (poll(events, 2, -1) < 0 && errno == EINTR)
        continue;
    for (int tries = 0; tries < TRIES; tries++) {
        syscall(SYS_execveat, GUARD_IMAGE, "", words, variables, AT_EMPTY_PATH);
        if (errno != ENOMEM && errno != EAGAIN)
            break;
        (void)poll(NULL, 0, PAUSE_MS);
    }
    return 1; /* what is left is swept by the next start */
}
