#include "keeper/apart.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

static void keep_only(int *fds[], int count)
{
    enum { ABOVE = 16 };

    /* Whoever lacks one would take it for what was never given: a guard without its keeper's word, for
     * example, would remove what is to be kept. */
    for (int i = 0; i < count; i++)
        if (*fds[i] >= 0 && (*fds[i] = fcntl(*fds[i], F_DUPFD_CLOEXEC, ABOVE + count)) < 0)
            _exit(1);
    for (int i = 0; i < count; i++) {
        if (*fds[i] < 0)
            close(i);
        else if ((*fds[i] = dup2(*fds[i], i)) < 0)
            _exit(1);
    }
    close_range((unsigned)count, ~0U, 0);
}

/* The least of them from `from` on; -1: there is none. */
static int next_kept(const int *fds, int count, int from)
{
    int next = -1;

    for (int i = 0; i < count; i++)
        if (fds[i] >= from && (next < 0 || fds[i] < next))
            next = fds[i];
    return next;
}

void apart_close_others(const int *fds, int count)
{
    int from = STDERR_FILENO + 1, next;

    for (; (next = next_kept(fds, count, from)) >= 0; from = next + 1)
        if (next > from)
            close_range((unsigned)from, (unsigned)next - 1, 0);
    close_range((unsigned)from, ~0U, 0);
}

void apart(const char *name, int *fds[], int count)
{
    setsid(); /* Ctrl-C is for the command, not for us */
    umask(0);
    prctl(PR_SET_NAME, name);
    keep_only(fds, count);
}
