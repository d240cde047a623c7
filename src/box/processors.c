#include "box/processors.h"

#include "base/error.h"

static void find_here(struct processors *processors)
{
    int here = sched_getcpu();

    processors->here = here < CPU_SETSIZE ? here : -1;
}

void processors_read(struct processors *processors)
{
    processors->here = -1;
    if (sched_getaffinity(0, sizeof processors->allowed, &processors->allowed) == 0 &&
        CPU_COUNT(&processors->allowed) > 1)
        find_here(processors);
}

void processors_stay(struct processors *processors)
{
    cpu_set_t only;

    if (processors->here < 0)
        return;
    find_here(processors);
    if (processors->here < 0)
        return;
    CPU_ZERO(&only);
    CPU_SET((unsigned)processors->here, &only);
    (void)sched_setaffinity(0, sizeof only, &only);
}

void processors_move_away(const struct processors *processors, pid_t pid)
{
    cpu_set_t others = processors->allowed;

    if (processors->here < 0)
        return;
    CPU_CLR((unsigned)processors->here, &others);
    (void)sched_setaffinity(pid, sizeof others, &others);
    (void)sched_setaffinity(pid, sizeof others, &processors->allowed); /* if they are busy, it may come back */
}

int processors_take_all(const struct processors *processors, struct error *err)
{
    if (CPU_COUNT(&processors->allowed) > 1 &&
        sched_setaffinity(0, sizeof processors->allowed, &processors->allowed) < 0)
        return error_sys(err, "take all processors again");
    return 0;
}
