/* The keeper's side of a switch; PID 1's is init/switch.c, where the whole is explained.
 *
 * Fresh overlays are mounted neither by PID 1, which cannot see the host's directories, nor by us, in whose
 * mount namespace they would be everybody's: a short-lived process enters the sandbox's user namespace, if we
 * are an ordinary user, makes itself a mount namespace that shows what ours shows, mounts there, and hands
 * detached copies to PID 1.  For root it stays what it is and maps ids, as the mounter does at the start. */

#include "box/switch.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "box/beside.h"
#include "box/box.h"
#include "box/fresh.h"
#include "box/host.h"
#include "box/steps.h"
#include "box/switch_list.h"
#include "init/wire.h"
#include "store/stack.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATIENCE_MS = 30000 };

struct turn {
    struct box *box;
    const struct box_switch *what;
    struct switch_list list;
    struct fresh fresh;             /* what the process that mounts works on */
    int fds[ASIDE_MOUNTS_MAX];      /* that process's: the fresh mounts, by entry */
    uint64_t ids[ASIDE_MOUNTS_MAX]; /* theirs */
};

/* --- the process that mounts --- */

static const struct switch_entry *overlay_of(const struct turn *turn, const struct switch_entry *file)
{
    for (size_t i = turn->list.len; i--;)
        if (turn->list.items[i].overlay && turn->list.items[i].made->id == file->made->parent)
            return &turn->list.items[i];
    return NULL;
}

/* It lies in a layer already: nobody could remove or change it while it was mounted over. */
static int make_file(const struct turn *turn, const struct switch_entry *entry, struct error *err)
{
    const struct switch_entry *overlay = overlay_of(turn, entry);
    const char *path = entry->step->target, *top = overlay ? overlay->step->target : NULL;
    struct stat status;

    if (!top || !path_within(path, top))
        return error_set(err, ERROR_INVALID, "%s is in no overlay", path);

    autoclose int file =
                      sys_openat2(turn->fds[overlay - turn->list.items], path + (top[1] ? strlen(top) : 0) + 1,
                                  O_PATH | O_NOFOLLOW, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS),
                  copy = -1;

    if (file < 0 || fstat(file, &status) < 0)
        return error_sys(err, "open %s", path);
    if (!S_ISREG(status.st_mode))
        return error_set(err, ERROR_REFUSED, "%s is no file any more", path);
    copy = sys_open_tree(file, "", AT_EMPTY_PATH);
    if (copy < 0 || sys_mount_attr(copy, step_attributes(entry->step), 0, -1) < 0)
        return error_sys(err, "seal %s", path);
    return steal_fd(&copy);
}

/* In messages of as many as one takes. */
static int hand_over(const struct turn *turn, struct error *err)
{
    struct message message = { .kind = MESSAGE_ATTACH };
    int fds[PROTOCOL_FDS_MAX];
    size_t count = 0;

    for (size_t i = 0; i < turn->list.len; i++) {
        if (turn->fds[i] >= 0)
            fds[count++] = turn->fds[i];
        if (count == PROTOCOL_FDS_MAX || (count && i + 1 == turn->list.len)) {
            if (wire_send(turn->box->init_fd, &message, fds, count) < 0)
                return error_sys(err, "hand the overlays over");
            count = 0;
        }
    }
    return 0;
}

static int mount_fresh(void *argument, struct error *err)
{
    struct turn *turn = argument;

    if (fresh_enter(&turn->fresh, err) < 0)
        return -1;
    for (size_t i = 0; i < turn->list.len; i++) {
        const struct switch_entry *entry = &turn->list.items[i];

        turn->fds[i] = -1;
        if (!entry->overlay && !entry->file)
            continue;
        turn->fds[i] =
            entry->overlay ? fresh_overlay(&turn->fresh, entry->step, err) : make_file(turn, entry, err);
        if (turn->fds[i] < 0)
            return -1;
        turn->ids[i] = sys_mount_id(turn->fds[i], "");
        if (!turn->ids[i])
            return error_sys(err, "look at the mount for %s", entry->step->target);
    }
    return hand_over(turn, err);
}

/* --- the keeper --- */

/* The next message, whatever it is; waits for it also on a socket that does not. */
static int receive_any(const struct box *box, struct message *message, int *fds, size_t *count,
                       struct error *err)
{
    struct pollfd polled = { .fd = box->init_fd, .events = POLLIN };
    int ready, got = WIRE_NOTHING;

    *message = (struct message){ 0 };
    *count = 0;
    while (got == WIRE_NOTHING) {
        ready = poll(&polled, 1, PATIENCE_MS);
        if (ready == 0)
            return error_set(err, ERROR_SYSTEM, "PID 1 says nothing");
        if (ready > 0)
            got = wire_receive(box->init_fd, message, fds, count, err);
        else if (errno != EINTR)
            return error_sys(err, "wait for PID 1");
    }
    return got == WIRE_CLOSED ? error_set(err, ERROR_SYSTEM, "PID 1 is gone") : got < 0 ? -1 : 0;
}

static int hand_on(const struct turn *turn, const struct message *message, const int *fds, size_t count,
                   struct error *err)
{
    const struct box_switch *what = turn->what;

    if (message->kind == MESSAGE_FAILED) {
        *err = message->error;
        return -1;
    }
    if (!what->other)
        return error_set(err, ERROR_INVALID, "PID 1 said %u, which was not asked for", message->kind);
    return what->other(what->owner, message, fds, count, err);
}

/* A message of this kind; with `list`, it brings one descriptor. */
static int receive(const struct turn *turn, uint32_t kind, struct message *message, int *list,
                   struct error *err)
{
    int fds[PROTOCOL_FDS_MAX];
    size_t count;

    for (;;) {
        if (receive_any(turn->box, message, fds, &count, err) < 0)
            return -1;
        if (message->kind == kind && count == (list ? 1U : 0U))
            break;
        if (hand_on(turn, message, fds, count, err) < 0)
            return -1;
    }
    if (list)
        *list = fds[0];
    return 0;
}

/* Gives 1 if it has not gone. */
static int send_aside(const struct turn *turn, struct error *err)
{
    struct message message = { .kind = MESSAGE_ASIDE };
    autoclose int list = switch_list_write(&turn->list, turn->what->plan, err);

    if (list < 0)
        return 1;
    if (wire_send(turn->box->init_fd, &message, &list, 1) < 0)
        return error_sys(err, "ask PID 1 to step aside");
    if (receive(turn, MESSAGE_ASIDE, &message, NULL, err) < 0)
        return -1;
    if (message.status == 0)
        return 0;
    *err = message.error;
    return 1;
}

static int remount(struct turn *turn, const struct strings *stack, struct error *err)
{
    const struct box_switch *what = turn->what;
    struct stack_place place = { .sandbox = what->dir->fd, .trees = turn->list.trees };
    int done;

    fresh_prepare(&turn->fresh, turn->box, what->plan, what->host, what->dir, stack);
    turn->fresh.x.trees = turn->list.trees;
    if (stack_renew_work(&place, err) < 0)
        return -1;
    done = beside_run(mount_fresh, turn, "the process that mounts overlays", err);
    free(turn->fresh.x.copies);
    return done;
}

static int verify(struct turn *turn, struct error *err)
{
    struct message message;
    int list = -1;

    if (receive(turn, MESSAGE_MOUNTED, &message, &list, err) < 0)
        return -1;
    for (size_t i = 0; i < turn->list.len; i++)
        if (turn->list.items[i].overlay || turn->list.items[i].file)
            turn->list.items[i].made->id = turn->ids[i];
    return verify_mounts(turn->box->mounted, list, err) < 0 ? error_while(err, "%s", step_name(STEP_VERIFY))
                                                            : 0;
}

static void take_stack(struct plan *plan, struct strings *stack)
{
    strings_free(&plan->stack);
    plan->stack = *stack;
    plan->resumed = true;
    *stack = STRINGS_NONE;
}

static int exchange(struct turn *turn, struct error *err)
{
    const struct box_switch *what = turn->what;
    autostrings struct strings stack = STRINGS_NONE;
    struct error failed = { 0 };
    bool kept = what->exchange(what->owner, &stack, &failed) < 0;

    if (kept && !stack_is_whole(what->dir->fd)) { /* the next start brings it to its end */
        *err = failed;
        return -1;
    }
    if (remount(turn, kept ? &what->plan->stack : &stack, err) < 0 || verify(turn, err) < 0)
        return -1;
    if (kept) {
        *err = failed;
        return SWITCH_KEPT;
    }
    take_stack(what->plan, &stack);
    return SWITCH_DONE;
}

int box_switch(struct box *box, const struct box_switch *what, struct error *err)
{
    autofree struct turn *turn = memory_zero(sizeof *turn);
    int aside;

    turn->box = box;
    turn->what = what;
    if (!box->mounted)
        return error_set(err, ERROR_INVALID, "the sandbox has not been verified yet");
    if (switch_list_fill(what->plan, box->mounted, what->trees, &turn->list, err) < 0)
        return SWITCH_BUSY;
    aside = send_aside(turn, err);
    if (aside != 0)
        return aside < 0 ? -1 : SWITCH_BUSY;
    return exchange(turn, err);
}
