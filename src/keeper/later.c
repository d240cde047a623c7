/* Merging meets files from inside, and an ordinary user needs a namespace to open all of them: so it is done in
 * a process of its own, which ends with us.  Layers are frozen and gone back to meanwhile; whether the merged
 * one still fits is found out when it is there (merge_adopt()). */

#include "keeper/later.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/own.h"
#include "box/plan.h"
#include "keeper/apart.h"
#include "keeper/upper.h"
#include "store/merge.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    QUIET_US = 20000, /* without a switch, until what was set aside is removed */
    ASIDE_MAX = 32,   /* switches whose remains may lie there */
};

/* --- the merger --- */

struct merged {
    struct error error; /* ERROR_NONE: it is there */
    char layer[ID_LENGTH + 1];
};

struct merging {
    const struct later *later;
    const char *top;
    size_t count;
    int answer;
};

static int merge(void *argument)
{
    const struct merging *merging = argument;
    const struct stack_place *place = &merging->later->place;
    struct merged merged = { 0 };

    if (merge_layers(place->layers, merging->top, merging->count,
                     merging->later->ids->shifted ? MERGE_TRUSTED : MERGE_USER, place->id, merged.layer,
                     &merged.error) == 0)
        merged.error.kind = ERROR_NONE;
    return write(merging->answer, &merged, sizeof merged) == (ssize_t)sizeof merged ? 0 : -1;
}

/* The lock on the sandbox and the sockets of clients are ours to let go of, not its. */
static _Noreturn void be_merger(struct merging *merging, pid_t keeper)
{
    struct error ignored;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "cove-merger");
    if (getppid() != keeper)
        _exit(1);
    apart_close_others((int[]){ merging->later->place.layers, merging->answer }, 2);
    _exit(upper_act(merging->later->ids, merge, merging, &ignored) < 0 ? 1 : 0);
}

static void merger_gone(struct later *later)
{
    loop_remove(later->loop, &later->merger);
    close(steal_fd(&later->merger.fd));
    while (waitpid(later->child, NULL, 0) < 0 && errno == EINTR)
        continue;
    later->child = 0;
}

/* One that has no place any more, because the sandbox went back to an earlier layer, is let go of.  What failed
 * is tried again after the next switch; in the end no more checkpoint can be made, which says so. */
static void merger_ready(void *owner, short revents)
{
    struct later *later = owner;
    struct merged merged;
    struct error ignored;

    (void)revents;
    if (read(later->merger.fd, &merged, sizeof merged) == (ssize_t)sizeof merged &&
        merged.error.kind == ERROR_NONE) {
        later->restacked = true;
        if (merge_adopt(&later->place, merged.layer, &ignored) != 0)
            (void)layers_release(later->place.layers, merged.layer, later->place.id, &ignored);
    }
    merger_gone(later);
}

static void start_merger(struct later *later, const char *top, size_t count)
{
    struct merging merging = { later, top, count, -1 };
    pid_t keeper = getpid();
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return;
    merging.answer = ends[1];
    later->child = fork();
    if (later->child == 0)
        be_merger(&merging, keeper);
    close(ends[1]);
    if (later->child < 0) {
        close(ends[0]);
        later->child = 0;
        return;
    }
    later->merger = (struct loop_source){ ends[0], POLLIN, merger_ready, later };
    loop_add(later->loop, &later->merger);
}

static void merge_if_deep(struct later *later)
{
    char top[ID_LENGTH + 1];
    struct error ignored;
    size_t count = 0;

    if (!later->child && stack_top(later->place.sandbox, top, &ignored) == 0 && *top &&
        merge_wanted(later->place.layers, top, &count, &ignored) == 0 && count)
        start_merger(later, top, count);
}

/* --- when --- */

void later_begin(struct later *later, const struct stack_place *place, const struct ids *ids, struct loop *loop)
{
    *later = LATER_NONE;
    later->place = *place;
    later->ids = ids;
    later->loop = loop;
}

static void clean(struct later *later)
{
    stack_clean(later->place.sandbox);
    later->aside = 0;
    later->clean_at = 0;
}

void later_switched(struct later *later)
{
    later->clean_at = clock_us() + QUIET_US;
    merge_if_deep(later);
    if (++later->aside >= ASIDE_MAX)
        clean(later);
}

void later_tend(struct later *later)
{
    if (later->clean_at && clock_us() >= later->clean_at)
        clean(later);
}

int later_patience(const struct later *later)
{
    uint64_t now = clock_us();

    if (!later->clean_at)
        return -1;
    return later->clean_at <= now ? 0 : (int)((later->clean_at - now) / 1000 + 1);
}

void later_make_room(struct later *later)
{
    autostrings struct strings chain = STRINGS_NONE;
    struct error ignored;
    char top[ID_LENGTH + 1];

    if (later->child && stack_top(later->place.sandbox, top, &ignored) == 0 &&
        layers_chain(later->place.layers, top, &chain, &ignored) == 0 && chain.len >= LAYERS_DEPTH_MAX)
        merger_ready(later, 0);
}

void later_end(struct later *later)
{
    if (!later->child)
        return;
    kill(later->child, SIGKILL);
    merger_gone(later);
}
