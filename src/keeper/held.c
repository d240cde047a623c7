#include "keeper/held.h"

#include "base/array.h"

static const int held[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };

void held_begin(sigset_t *old)
{
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_LEN(held); i++)
        sigaddset(&set, held[i]);
    sigprocmask(SIG_BLOCK, &set, old);
}

bool held_waits(void)
{
    sigset_t waiting;

    if (sigpending(&waiting) < 0)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(held); i++)
        if (sigismember(&waiting, held[i]) == 1)
            return true;
    return false;
}
