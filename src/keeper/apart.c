#include "keeper/apart.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

static void keep_only(int *fds[], int count)
{
    enum { ABOVE = 16 };

    for (int i = 0; i < count; i++)
        *fds[i] = fcntl(*fds[i], F_DUPFD_CLOEXEC, ABOVE + count);
    for (int i = 0; i < count; i++) {
        dup2(*fds[i], i);
        *fds[i] = i;
    }
    close_range((unsigned)count, ~0U, 0);
}

void apart(const char *name, int *fds[], int count)
{
    setsid(); /* Ctrl-C is for the command, not for us */
    umask(0);
    prctl(PR_SET_NAME, name);
    keep_only(fds, count);
}
