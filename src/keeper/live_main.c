/* The process that brings work home while a sandbox runs.
 *
 * Should: notice within milliseconds what was written to the layer of the workspace; bring it to the
 * host if it is ordinary and the owner has not changed it; at the end, bring what was missed.
 * Must not: follow a path of the layer; put a byte on the host that was not judged; grow with what the
 * sandbox does; keep the keeper waiting, whose child it is and with whom it shares nothing.
 *
 * inotify tells which paths were written to.  They become due a few milliseconds later, because a name that
 * was just made is often gone again, or not yet complete.  What is not told (lost events, mapped files,
 * second names of a file) is found by looking around: over all known paths now and then, and over the
 * whole layer if events were lost.  It takes a twentieth of the time at most. */
#include "keeper/live_main.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/own.h"
#include "base/text.h"
#include "keeper/live_watch.h"
#include "sys/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

enum { PENDING_MAX = 1024, LEFT_MAX = 65536 };

/* Microseconds. */
enum {
    DUE_CLOSED = 3000,
    DUE_REMOVED = 6000, /* after what may have taken its place */
    DUE_QUIET = 10000,
    DUE_LATEST = 30000,
    STEADY_LATEST = 40000, /* a file that always grows is then brought as far as it is */
    RETRY = 5000,
    SLICE = 10000,            /* of work before events are read again */
    AROUND_HEARING = 1000000, /* between two looks around */
    AROUND_ELSE = 25000,
    AROUND_FACTOR = 20,
};

struct pending {
    char *path;
    uint64_t hash, first, due;
    bool below;
};

/* A look around: first over what is known, then, if need be, over all directories. */
struct around {
    bool active, all;
    size_t at;
    struct strings left; /* directories */
    char *dir;
    DIR *names;
    uint64_t cost, next;
};

struct work {
    struct bring bring;
    struct watch watch;
    struct {
        struct pending *items;
        size_t len, cap;
    } pending;
    struct around around;
    int control;
    bool look_around; /* something was not noted */
};

/* --- what is pending --- */

static uint64_t hash(const char *path)
{
    uint64_t value = 0xcbf29ce484222325ULL;

    for (; *path; path++)
        value = (value ^ (unsigned char)*path) * 0x100000001b3ULL;
    return value;
}

static struct pending *find_pending(struct work *work, const char *path)
{
    uint64_t wanted = hash(path);

    for (size_t i = 0; i < work->pending.len; i++)
        if (work->pending.items[i].hash == wanted && strcmp(work->pending.items[i].path, path) == 0)
            return &work->pending.items[i];
    if (work->pending.len >= PENDING_MAX)
        return NULL;

    struct pending *added = array_add(&work->pending);

    *added = (struct pending){ .path = text_copy(path), .hash = wanted, .first = clock_us() };
    return added;
}

static void told(void *owner, const char *path, enum watch_what what)
{
    static const uint64_t after[] = { [WATCH_CHANGED] = DUE_QUIET,
                                      [WATCH_CLOSED] = DUE_CLOSED,
                                      [WATCH_REMOVED] = DUE_REMOVED,
                                      [WATCH_DIRECTORY] = 0 };
    struct work *work = owner;
    struct pending *pending = find_pending(work, path);

    if (!pending) {
        work->look_around = true;
        return;
    }
    pending->below = pending->below || what == WATCH_DIRECTORY;
    pending->due = clock_us() + after[what];
    if (pending->due > pending->first + DUE_LATEST)
        pending->due = pending->first + DUE_LATEST;
}

static bool is_resting(const struct work *work, const char *path, uint64_t *until)
{
    const struct known *known = known_find(&work->bring.known, path);

    *until = known ? known->rest_until : 0;
    return *until > clock_us();
}

/* True if it is done with. */
static bool bring_pending(struct work *work, struct pending *pending)
{
    uint64_t until, now = clock_us();

    if (pending->due > now)
        return false;
    if (is_resting(work, pending->path, &until)) {
        pending->due = until;
        return false;
    }
    if (pending->below)
        watch_tree(&work->watch, pending->path); /* first: what comes after is told */
    if (bring_path(&work->bring, pending->path, pending->below, now < pending->first + STEADY_LATEST) ==
        BRING_DONE)
        return true;
    pending->due = clock_us() + RETRY;
    return false;
}

static void bring_due(struct work *work, uint64_t until)
{
    size_t kept = 0;

    for (size_t i = 0; i < work->pending.len; i++) {
        struct pending *pending = &work->pending.items[i];

        if (clock_us() < until && bring_pending(work, pending))
            free(pending->path);
        else
            work->pending.items[kept++] = *pending;
    }
    work->pending.len = kept;
}

/* --- looking around --- */

static void around_begin(struct work *work)
{
    struct around *around = &work->around;

    around->active = true;
    around->all = work->look_around || work->watch.lost || work->watch.deaf;
    around->at = 0;
    around->cost = 0;
    work->look_around = work->watch.lost = false;
    if (around->all)
        strings_add(&around->left, "");
}

static void around_end(struct work *work)
{
    struct around *around = &work->around;
    bool hears = work->watch.hears || !work->bring.known.len; /* of names that come it does anyhow */
    uint64_t pause = hears && !work->watch.deaf ? AROUND_HEARING : AROUND_ELSE;

    if (pause < around->cost * AROUND_FACTOR)
        pause = around->cost * AROUND_FACTOR;
    around->next = clock_us() + pause;
    around->active = false;
}

static void look_at(struct work *work, const char *path)
{
    const struct known *known = known_find(&work->bring.known, path);
    uint64_t until;

    if ((!known || bring_is_due(&work->bring, known)) && !is_resting(work, path, &until))
        (void)bring_path(&work->bring, path, bring_replaces(&work->bring, path), false);
}

static bool around_known(struct work *work)
{
    struct around *around = &work->around;

    if (around->at >= work->bring.known.len)
        return false;

    autofree char *path = text_copy(work->bring.known.items[around->at++].path);

    look_at(work, path);
    return true;
}

static bool around_next_dir(struct work *work)
{
    struct around *around = &work->around;

    if (!around->left.len)
        return false;
    free(around->dir);
    around->dir = around->left.items[--around->left.len];
    around->left.items[around->left.len] = NULL;
    watch_add(&work->watch, around->dir);

    int dir = sys_open_beneath(work->bring.sides.upper, around->dir, O_RDONLY | O_DIRECTORY);

    around->names = dir < 0 ? NULL : fdopendir(dir);
    return true;
}

static bool around_name(struct work *work)
{
    struct around *around = &work->around;
    const struct dirent *entry = sys_next_entry(around->names);

    if (!entry) {
        closedir(around->names);
        around->names = NULL;
        return true;
    }

    autofree char *path =
        *around->dir ? text_format("%s/%s", around->dir, entry->d_name) : text_copy(entry->d_name);

    look_at(work, path);
    if ((entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN) && around->left.len < LEFT_MAX)
        strings_add(&around->left, path);
    return true;
}

/* One step; false: it is at its end. */
static bool around_step(struct work *work)
{
    if (work->around.names)
        return around_name(work);
    return around_known(work) || around_next_dir(work);
}

static void look_around(struct work *work, uint64_t until)
{
    uint64_t began = clock_us();

    if (!work->around.active && (work->look_around || work->watch.lost || began >= work->around.next))
        around_begin(work);
    if (!work->around.active)
        return;
    while (clock_us() < until)
        if (!around_step(work)) {
            work->around.cost += clock_us() - began;
            around_end(work);
            return;
        }
    work->around.cost += clock_us() - began;
}

/* --- the loop --- */

static int patience(const struct work *work)
{
    uint64_t now = clock_us(), next = work->around.next;

    if (work->around.active || work->look_around || work->watch.lost)
        return 0;
    for (size_t i = 0; i < work->pending.len; i++)
        if (work->pending.items[i].due < next)
            next = work->pending.items[i].due;
    return next <= now ? 0 : (int)((next - now + 999) / 1000);
}

/* 1: the sandbox is empty; 0: nothing was said; -1: the keeper is dead. */
static int hear(int control, int flags)
{
    char word = 0;
    ssize_t got = recv(control, &word, 1, MSG_DONTWAIT | flags);

    if (got < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    return got == 0 ? -1 : word == LIVE_FINISH;
}

static bool is_stopped(void *owner)
{
    const struct work *work = owner;

    return hear(work->control, MSG_PEEK) < 0;
}

static int run(struct work *work)
{
    for (;;) {
        struct pollfd polled[] = { { .fd = work->control, .events = POLLIN },
                                   { .fd = work->watch.fd, .events = POLLIN } };

        (void)poll(polled, ARRAY_LEN(polled), patience(work));

        int said = hear(work->control, 0);

        if (said)
            return said < 0 ? -1 : 0;
        if (polled[1].revents)
            watch_read(&work->watch, told, work);
        bring_due(work, clock_us() + SLICE);
        look_around(work, clock_us() + SLICE);
    }
}

static void work_free(struct work *work)
{
    for (size_t i = 0; i < work->pending.len; i++)
        free(work->pending.items[i].path);
    free(work->pending.items);
    strings_free(&work->around.left);
    free(work->around.dir);
    own_closedir(&work->around.names);
    watch_close(&work->watch);
    known_free(&work->bring.known);
}

int live_main(const struct live_sides *sides, int control, int prints, struct live_end *end)
{
    struct work work = { .bring = { .sides = *sides, .prints = prints, .stop = is_stopped },
                         .control = control };

    work.bring.owner = &work;
    watch_open(&work.watch, sides->upper);
    work.look_around = true; /* what was written before we came */

    int result = run(&work);

    end->slow = work.watch.deaf || work.bring.known.full;
    if (result == 0 && bring_all(&work.bring, &end->rests, end->counts, &end->problem) < 0)
        end->counts[BRING_FAILED]++;
    end->brought = work.bring.brought;
    work_free(&work);
    return result;
}
