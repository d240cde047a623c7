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

void processors_move_away(struct processors *processors, pid_t pid)
{
    cpu_set_t others = processors->allowed;

    if (processors->here < 0)
        return;
    find_here(processors);
    if (processors->here < 0)
        return;
    CPU_CLR((unsigned)processors->here, &others);
    (void)sched_setaffinity(pid, sizeof others, &others);
    (void)sched_setaffinity(pid, sizeof others, &processors->allowed); /* if they are busy, it may come back */
}

/* So many of those that are allowed, from where we are on. */
static void choose(const struct processors *processors, unsigned most, cpu_set_t *out)
{
    unsigned begin = processors->here < 0 ? 0 : (unsigned)processors->here;

    CPU_ZERO(out);
    for (unsigned i = 0; i < CPU_SETSIZE && (unsigned)CPU_COUNT(out) < most; i++)
        if (CPU_ISSET((begin + i) % CPU_SETSIZE, &processors->allowed))
            CPU_SET((begin + i) % CPU_SETSIZE, out);
}

/* A limit that is not kept must not be called one. */
static int read_back(const cpu_set_t *taken, struct error *err)
{
    cpu_set_t now;

    if (sched_getaffinity(0, sizeof now, &now) < 0)
        return error_sys(err, "read back which processors were taken");
    return CPU_EQUAL(&now, taken) ? 0
                                  : error_set(err, ERROR_UNSUPPORTED, "the limit on processors does not hold");
}

int processors_take(const struct processors *processors, unsigned most, struct error *err)
{
    cpu_set_t taken = processors->allowed;

    if (CPU_COUNT(&taken) <= 1)
        return 0;
    if (most)
        choose(processors, most, &taken);
    if (sched_setaffinity(0, sizeof taken, &taken) < 0)
        return error_sys(err, "take processors again");
    return most ? read_back(&taken, err) : 0;
}
