#include "changes/apply.h"

#include "base/own.h"
#include "base/text.h"
#include "changes/changes.h"
#include "changes/digest.h"
#include "changes/place.h"
#include "changes/scan.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <unistd.h>

/* --- is it still what the sandbox saw? --- */

static enum side_type type_of(mode_t mode)
{
    if (!mode)
        return SIDE_NONE;
    if (S_ISREG(mode))
        return SIDE_FILE;
    if (S_ISLNK(mode))
        return SIDE_LINK;
    return S_ISDIR(mode) ? SIDE_DIRECTORY : SIDE_OTHER;
}

static int look(struct task *task)
{
    if (fstatat(task->parent, task->name, &task->seen, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    memset(&task->seen, 0, sizeof task->seen);
    return errno == ENOENT ? 0 : place_failed(task, "look at what is there");
}

static bool has_target(const struct task *task, const char *target)
{
    struct link_target there = place_target(task->parent, task->name);

    return strcmp(there.text, target ? target : "") == 0;
}

/* A directory is what is in it, and that speaks for itself. */
static bool is_as_scanned(const struct task *task)
{
    const struct side *old = &task->change->old;

    if (type_of(task->seen.st_mode) != old->type)
        return false;
    if (old->type == SIDE_LINK)
        return has_target(task, old->target);
    if (old->type != SIDE_NONE && (old->type == SIDE_FILE || task->change->kind == CHANGE_MODE) &&
        (task->seen.st_mode & 07777) != old->mode)
        return false;
    if (old->type != SIDE_FILE)
        return true;
    return (uint64_t)task->seen.st_size == old->size && task->seen.st_mtim.tv_sec == old->mtime.tv_sec &&
           task->seen.st_mtim.tv_nsec == old->mtime.tv_nsec;
}

static bool has_same_bytes(const struct task *task)
{
    autoclose int new = scan_open_file(task->apply->upper, task->change->path);
    autoclose int old = scan_open_file(task->parent, task->name);
    struct digest wanted, there;

    return new >= 0 && old >= 0 && digest_file(new, &wanted) == 0 && digest_file(old, &there) == 0 &&
           digest_equal(&wanted, &there);
}

/* A second try, or the owner did the same. */
static bool is_done_already(const struct task *task)
{
    const struct side *new = &task->change->new;

    if (type_of(task->seen.st_mode) != new->type)
        return false;
    if (new->type == SIDE_NONE)
        return true;
    if (new->type == SIDE_LINK)
        return has_target(task, new->target);
    if ((task->seen.st_mode ^ new->mode) & 0777)
        return false;
    return new->type == SIDE_DIRECTORY || ((uint64_t)task->seen.st_size == new->size &&has_same_bytes(task));
}

/* --- what is never brought home --- */

/* By its text it stays; but a link of the owner's on its way may lead out. */
static bool leads_out(const struct task *task)
{
    const char *target = task->change->new.target, *path = task->change->path, *slash = strrchr(path, '/');

    if (task->change->new.type != SIDE_LINK || *target == '/')
        return false;

    autofree char *whole = text_format("%.*s%s", slash ? (int)(slash + 1 - path) : 0, path, target);
    autoclose int end = sys_openat2(task->apply->tree, whole, O_PATH, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);

    return end < 0 && (errno == EXDEV || errno == EAGAIN);
}

static int refuse(struct task *task)
{
    static const struct {
        unsigned flag;
        const char *why;
    } reasons[] = {
        { FLAG_SPECIAL, "devices, pipes and sockets are never brought home" },
        { FLAG_LINK_OUT, "such links are never brought home" },
        { FLAG_HIDDEN, "you have a file there that the sandbox was not shown" },
        { FLAG_UNREADABLE, "it cannot be read" },
        { FLAG_TOO_DEEP, "what is in it is nested too deep to be brought home" },
    };
    const struct change *change = task->change;

    for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
        if (change->flags & reasons[i].flag)
            return place_refuse(task, reasons[i].why);
    if (change->count > 0)
        return place_refuse(task, "too many files below it went; remove the directory yourself");
    if (change->kind != CHANGE_REMOVED && leftover_is(task->name))
        return place_refuse(task, "files with such names are made by cove apply, for a moment");
    if (leads_out(task))
        return place_refuse(task, "through another link it leads out of the workspace");
    return 0;
}

/* --- one change --- */

/* The time of a directory says only that something in it was changed, maybe by us: then its mode is
 * changed if that lets nobody in. */
static bool is_changed_since(const struct task *task)
{
    const struct change *change = task->change;

    if (change->kind == CHANGE_MODE && change->new.type == SIDE_DIRECTORY &&
        !(change->new.mode & ~task->seen.st_mode & 0777))
        return false;
    return change->flags & FLAG_BASE_CHANGED;
}

/* 1: there is nothing to do. */
static int check(struct task *task)
{
    if (refuse(task) < 0 || look(task) < 0)
        return -1;
    if (is_done_already(task)) {
        task->result->outcome = APPLY_SAME;
        return 1;
    }
    if (task->apply->way != APPLY_WAY_SANDBOX &&
        (is_changed_since(task) || (task->change->kind != CHANGE_RENAMED && !is_as_scanned(task))))
        return place_conflict(task, "it was changed on the host since the sandbox began");
    if (task->change->kind == CHANGE_RENAMED && task->seen.st_mode)
        return place_conflict(task, "something was made there meanwhile");
    return 0;
}

/* Inside it lost its other names when its mode changed, and they kept theirs. */
static bool has_other_names(const struct task *task)
{
    return S_ISREG(task->seen.st_mode) && task->seen.st_nlink > 1;
}

static int carry_out(struct task *task)
{
    if (!place_copies(task->change) && place_ask(task, -1, -1) < 0)
        return -1;
    switch (task->change->kind) {
    case CHANGE_REMOVED:
        return place_take_away(task);
    case CHANGE_MODE:
        return has_other_names(task) ? place_put(task) : place_mode(task, true);
    case CHANGE_RENAMED:
    case CHANGE_ADDED:
    case CHANGE_CHANGED:
    case CHANGE_RETYPED:
        return place_put(task);
    }
    return -1;
}

static int open_parent(const struct apply *apply, const char *path, struct task *task)
{
    const char *slash = strrchr(path, '/');
    autofree char *directory = text_format("%.*s", slash ? (int)(slash - path) : 0, path);

    task->name = slash ? slash + 1 : path;
    leftover_name(task->name, task->beside);
    task->parent = scan_open(apply->tree, directory, O_PATH | O_DIRECTORY);
    return task->parent;
}

/* An earlier try was stopped while it took something away. */
static void clear_earlier(struct task *task)
{
    memcpy(task->beside, task->name, strlen(task->name) + 1);
    (void)leftover_clear(task, task->change->path);
}

/* Under a name that nothing reads. */
static void put_beside(struct task *task)
{
    autofree char *name = text_format("%s%s", task->name, task->apply->suffix);

    task->name = name;
    leftover_name(task->name, task->beside);
    if (look(task) < 0)
        return;
    if (task->seen.st_mode && !is_done_already(task)) {
        (void)place_conflict(task,
                             "what the sandbox made of it before lies beside it; look at it, then remove it");
        return;
    }
    if (!task->apply->only_look && !task->seen.st_mode && place_put(task) < 0)
        return;
    task->result->outcome = APPLY_BESIDE;
}

static void settle(struct task *task)
{
    enum side_type type = task->change->new.type;

    if (task->apply->way == APPLY_WAY_HOST)
        task->result->outcome = APPLY_SETTLED;
    else if (task->apply->way == APPLY_WAY_BOTH && (type == SIDE_FILE || type == SIDE_LINK))
        put_beside(task);
}

static void apply_at(const struct apply *apply, size_t index, const struct change *change,
                     struct apply_result *result)
{
    struct task task = { .apply = apply,
                         .change = change,
                         .content = apply->contents ? &apply->contents[index] : NULL,
                         .result = result };
    autoclose int parent = open_parent(apply, change->path, &task);

    result->outcome = APPLY_DONE;
    if (parent < 0) {
        if (errno == ENOENT && apply->only_look)
            return; /* its directory would have been made */
        if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP && errno != EXDEV && errno != EACCES)
            (void)place_failed(&task, "open the directory it lies in");
        else
            (void)place_conflict(&task, errno == EXDEV ? "something is mounted on the directory it lies in"
                                                       : "the directory it lies in is not there any more");
        return;
    }
    if (change->kind == CHANGE_REMOVED && leftover_is(task.name) && !apply->only_look)
        clear_earlier(&task);
    else if (check(&task) == 0 && !apply->only_look)
        (void)carry_out(&task);
    if (result->outcome == APPLY_CONFLICT)
        settle(&task);
}

/* A file that was renamed is put at its new place first; then the old one goes. */
static void remove_origin(const struct apply *apply, size_t index, const struct change *change,
                          struct apply_result *result)
{
    struct change gone = { .path = change->from, .kind = CHANGE_REMOVED, .old = change->old };
    enum apply_outcome put = result->outcome;

    if (put != APPLY_DONE && put != APPLY_SAME)
        return;
    apply_at(apply, index, &gone, result);
    if (result->outcome == APPLY_SAME)
        result->outcome = put;
}

/* While files are put into a directory and taken out of it, it is open to its owner. */
static void close_directory(const struct apply *apply, const struct change *change, struct apply_result *result)
{
    struct task task = { .apply = apply, .change = change, .result = result };
    autoclose int parent = open_parent(apply, change->path, &task);

    if (parent < 0)
        (void)place_failed(&task, "open the directory it lies in");
    else if (look(&task) == 0)
        (void)place_mode(&task, false);
}

/* --- all of them --- */

enum round { ROUND_MOST, ROUND_REMOVALS, ROUND_MODES, ROUNDS };

static bool is_of_round(const struct change *change, enum round round, enum apply_outcome outcome)
{
    bool removal = change->kind == CHANGE_REMOVED ||
                   (change->kind == CHANGE_RETYPED && change->old.type == SIDE_DIRECTORY);

    if (round == ROUND_MODES)
        return change->new.type == SIDE_DIRECTORY && (change->new.mode & 0700) != 0700 && outcome == APPLY_DONE;
    return removal == (round == ROUND_REMOVALS);
}

/* Closed now, the next try could not bring what is missing. */
static bool is_incomplete(const struct changes *changes, size_t index, const struct apply_result *results)
{
    const char *directory = changes->items[index].path;
    size_t len = strlen(directory);

    for (size_t i = index + 1; i < changes->len && strncmp(changes->items[i].path, directory, len) == 0; i++)
        if (changes->items[i].path[len] == '/' && results[i].outcome == APPLY_FAILED)
            return true;
    return false;
}

static void apply_round(const struct apply *apply, const struct changes *changes, enum round round,
                        struct apply_result *results)
{
    for (size_t n = 0; n < changes->len; n++) {
        size_t i = round == ROUND_MOST ? n : changes->len - 1 - n;
        const struct change *change = &changes->items[i];

        if (results[i].outcome == APPLY_LEFT || !is_of_round(change, round, results[i].outcome))
            continue;
        if (round == ROUND_MODES && is_incomplete(changes, i, results)) {
            results[i].outcome = APPLY_FAILED;
            error_set(&results[i].why, ERROR_SYSTEM, "it stays open until everything in it is there");
            continue;
        }
        if (round == ROUND_MODES) {
            close_directory(apply, change, &results[i]);
            continue;
        }
        apply_at(apply, i, change, &results[i]);
        if (change->kind == CHANGE_RENAMED)
            remove_origin(apply, i, change, &results[i]);
    }
}

int apply_changes(const struct apply *apply, const struct changes *changes, apply_wanted *wanted, void *owner,
                  struct apply_result *results, struct error *err)
{
    for (size_t i = 0; i < changes->len; i++) {
        memset(&results[i], 0, sizeof results[i]);
        results[i].outcome = wanted(owner, &changes->items[i]) ? APPLY_DONE : APPLY_LEFT;
    }
    if (!apply->only_look && !apply->live)
        leftovers_sweep(apply);
    for (enum round round = 0; round < (apply->only_look ? ROUND_MODES : ROUNDS); round++)
        apply_round(apply, changes, round, results);
    if (!apply->only_look && !apply->live && syncfs(apply->tree) < 0)
        return error_sys(err, "write the changes to disk");
    return 0;
}
