#include "keeper/room.h"

#include "base/array.h"
#include "base/error.h"
#include "box/box.h"
#include "box/host.h"
#include "box/plan.h"
#include "keeper/entrance.h"
#include "keeper/held.h"
#include "keeper/keeper.h"
#include "store/store.h"

#include <signal.h>
#include <sys/resource.h>

/* One run, while it lasts. */
struct stay {
    const struct host *host;
    struct plan *plan;
    const struct room *room;
    struct sandbox_dir dir;
    struct box box;
};

/* There is no guard: if we are killed PID 1 ends itself, and the next guard finds a directory
 * without lock and record. */
static void leave(struct stay *stay)
{
    struct error ignored;

    box_end(&stay->box);
    if (stay->dir.fd >= 0)
        (void)store_remove(&stay->dir, &ignored);
    stay->dir = SANDBOX_DIR_NONE;
}

/* The bound of what this process writes to a file: our relays are what does.  Past it they get an error,
 * not a signal. */
struct bound {
    struct rlimit limit;
    struct sigaction action;
};

static void bound_set(struct bound *bound, uint64_t most)
{
    struct sigaction ignore = { .sa_handler = SIG_IGN };
    struct rlimit limit;

    sigaction(SIGXFSZ, &ignore, &bound->action);
    getrlimit(RLIMIT_FSIZE, &bound->limit);
    limit = bound->limit;
    if (most && most < limit.rlim_cur)
        limit.rlim_cur = most;
    setrlimit(RLIMIT_FSIZE, &limit);
}

static void bound_lift(const struct bound *bound)
{
    setrlimit(RLIMIT_FSIZE, &bound->limit);
    sigaction(SIGXFSZ, &bound->action, NULL);
}

static int started(void *owner, struct error *err)
{
    const struct stay *stay = owner;

    return stay->room->started ? stay->room->started(stay->room->owner, &stay->box, err) : 0;
}

static int remain(struct stay *stay, struct result *result, struct error *err)
{
    static const char *const no_env[] = { NULL };
    const struct plan *plan = stay->plan;
    const struct room *room = stay->room;
    struct keeper_run run = {
        .argv = (const char *const *)plan->argv.items,
        .envp = plan->env.len ? (const char *const *)plan->env.items : no_env,
        .cwd = plan->cwd,
        .uid = plan->ids.uid,
        .gid = plan->ids.gid,
        .flags = plan->start_flags,
        .timeout_ms = room->timeout_ms,
        .limits = &plan->limits,
        .processes = plan_process_rlimit(plan),
        .layers = stay->dir.fd,
        .in = room->in,
        .out = room->out,
        .err = room->err,
        .program = room->program,
        .pipe_owner = plan->ids.shifted ? plan->ids.base + plan->ids.uid : stay->host->uid,
        .started = started,
        .owner = stay,
    };
    struct bound bound;

    bound_set(&bound, room->output_most);
    int kept = keeper_run(&stay->box, &run, result, err);
    bound_lift(&bound);
    return kept;
}

int room_run(const struct host *host, struct plan *plan, const struct room *room, struct result *result,
             struct error *err)
{
    struct stay stay = { host, plan, room, SANDBOX_DIR_NONE, BOX_NONE };
    sigset_t old;

    *result = (struct result){ .exit_code = EXIT_OUR_ERROR };
    held_begin(&old);

    int done = entrance_enter(&(struct entrance){ .host = host, .plan = plan }, &stay.dir, &stay.box, err);

    if (done == 0)
        done = remain(&stay, result, err);
    leave(&stay);
    sigprocmask(SIG_SETMASK, &old, NULL);
    return done;
}
