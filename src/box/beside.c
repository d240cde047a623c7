#include "box/beside.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/own.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>

struct beside {
    int (*work)(void *argument, struct error *err);
    void *argument;
    bool done;
    struct error error;
};

static int beside_main(void *argument)
{
    struct beside *beside = argument;

    beside->done = beside->work(beside->argument, &beside->error) == 0;
    return 0;
}

int beside_run(int (*work)(void *argument, struct error *err), void *argument, const char *what,
               struct error *err)
{
    enum { STACK = 256 << 10 };
    struct beside beside = { .work = work, .argument = argument };
    autofree char *stack = memory_resize(NULL, STACK);
    pid_t child;

    error_set(&beside.error, ERROR_SYSTEM, "%s died", what);
    child = clone(beside_main, stack + STACK, CLONE_VM | CLONE_VFORK | SIGCHLD, &beside);
    if (child < 0)
        return error_sys(err, "fork %s", what);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        continue;
    if (beside.done)
        return 0;
    *err = beside.error;
    return -1;
}
