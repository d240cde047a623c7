/* Stepping aside, so that the layers below us can be exchanged.
 *
 * Theory of operation.  As long as an overlay is mounted, somebody may write into its upper directory; a layer
 * is frozen only when the kernel has let go of it.  So PID 1, alone by now, takes its whole world apart and
 * puts it together again:
 *
 *   1 a tmpfs, the room, is mounted over our root, where nobody sees it
 *   2 whatever is mounted in a writable overlay, such overlays too, moves to a place in the room, children
 *     before their parents
 *   3 the room becomes our root, the old one a directory in it
 *   4 each overlay is asked whether anybody else uses it (MNT_EXPIRE says so and does nothing else the first
 *     time), and only when none is, each is unmounted, never by detaching: what is still used must not go
 *   5 the keeper does its work, and fresh overlays arrive as descriptors
 *   6 they are attached, everything moves back, parents first, the new root becomes ours, the room goes
 *
 * Where only overlays are exchanged in which nothing is mounted, and the root is none of them, there is nothing
 * to move: each is asked, unmounted, and replaced where it is (4 to 6).
 *
 * Up to the first unmount all of it can be undone, by step 6 with the old root: then the keeper hears EBUSY,
 * and nothing has happened.  After it there is no way back but fresh overlays, so whatever goes wrong ends PID
 * 1 and the sandbox; its files are where they were.
 *
 * Should: touch nothing but what the list names; look whether each mount is where the list says, since commands
 * may have renamed the directories above it.
 * Must not: detach an overlay; go on without a part of the list; keep a descriptor on anything mounted. */

#include "init/domain.h"
#include "init/init.h"
#include "init/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Newer than musl's headers; linux/mount.h cannot stand beside every libc's. */
#ifndef FSOPEN_CLOEXEC
#define FSOPEN_CLOEXEC 1
#define FSMOUNT_CLOEXEC 1
#define FSCONFIG_SET_STRING 1
#define FSCONFIG_CMD_CREATE 6
#define MOUNT_ATTR_NOSUID 2
#define MOUNT_ATTR_NODEV 4
#define MOUNT_ATTR_NOEXEC 8
#define MOVE_MOUNT_F_SYMLINKS 0x01
#define MOVE_MOUNT_F_EMPTY_PATH 0x04
#define MOVE_MOUNT_T_EMPTY_PATH 0x40
#endif

#define OLD_ROOT "old"

struct absence {
    const struct aside_list *list;
    size_t size; /* of its memory */
    char *paths[ASIDE_MOUNTS_MAX], *writable[ASIDE_WRITABLE_MAX];
    int fresh[ASIDE_MOUNTS_MAX]; /* -1: not there */
    int room;
    size_t first_away; /* all from here on are in the room */
};

struct place {
    char name[16];
};

static struct place place_of(size_t number)
{
    struct place place;

    snprintf(place.name, sizeof place.name, "%zu", number);
    return place;
}

static bool is_fresh(const struct absence *absence, size_t number)
{
    return absence->list->items[number].flags & ASIDE_FRESH;
}

/* --- the list --- */

static bool take_paths(char **at, const char *end, size_t count, char **paths)
{
    for (size_t i = 0; i < count; i++) {
        char *stop = *at < end ? memchr(*at, '\0', (size_t)(end - *at)) : NULL;

        if (!stop || **at != '/')
            return false;
        paths[i] = *at;
        *at = stop + 1;
    }
    return true;
}

static bool is_root(const char *path)
{
    return strcmp(path, "/") == 0;
}

/* Nothing has to move. */
static bool is_in_place(const struct absence *absence)
{
    for (size_t i = 0; i < absence->list->mounts; i++)
        if (is_root(absence->paths[i]) || absence->list->items[i].flags != ASIDE_FRESH)
            return false;
    return true;
}

static bool is_whole(struct absence *absence)
{
    const struct aside_list *list = absence->list;
    char *at = (char *)(uintptr_t)list + sizeof *list, *end = (char *)(uintptr_t)list + absence->size;

    if (absence->size < sizeof *list || list->mounts < 1 || list->mounts > ASIDE_MOUNTS_MAX ||
        list->writable > ASIDE_WRITABLE_MAX || list->mounts * sizeof *list->items > (size_t)(end - at))
        return false;
    at += list->mounts * sizeof *list->items;
    return take_paths(&at, end, list->mounts, absence->paths) &&
           take_paths(&at, end, list->writable, absence->writable) &&
           (absence->list->mounts && is_root(absence->paths[0]) ? is_fresh(absence, 0) : is_in_place(absence));
}

/* Read to where there is memory already, if it is no more than usual: a mapping elsewhere leaves its tables. */
static _Alignas(struct aside_list) char usual[8192];

static const void *bytes_of(int fd, size_t size)
{
    if (size > sizeof usual)
        return mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    return pread(fd, usual, size, 0) == (ssize_t)size ? usual : MAP_FAILED;
}

static int read_list(struct absence *absence, int fd, struct error *err)
{
    struct stat status;

    absence->list = MAP_FAILED;
    if (fstat(fd, &status) < 0 || status.st_size <= 0 || status.st_size > ASIDE_SIZE_MAX)
        return error_set(err, ERROR_INVALID, "a list of mounts has no size");
    absence->size = (size_t)status.st_size;
    absence->list = bytes_of(fd, absence->size);
    if (absence->list == MAP_FAILED)
        return error_sys(err, "read the list of mounts");
    if (!is_whole(absence))
        return error_set(err, ERROR_INVALID, "a list of mounts is not whole");
    for (size_t i = 0; i < ASIDE_MOUNTS_MAX; i++)
        absence->fresh[i] = -1;
    absence->room = -1;
    absence->first_away = absence->list->mounts;
    return 0;
}

/* --- may we? --- */

/* Everybody inside descends from us. */
static int check_alone(struct error *err)
{
    if (!spawner_is_alone()) {
        errno = EBUSY;
        return error_sys(err, "switch layers while processes are running");
    }
    spawner_end();

    siginfo_t info;

    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0 && errno == ECHILD)
        return 0;
    errno = EBUSY;
    return error_sys(err, "switch layers while processes are running");
}

static int check_places(const struct absence *absence, struct error *err)
{
    for (size_t i = 0; i < absence->list->mounts; i++)
        if (mount_id(absence->paths[i]) != absence->list->items[i].id) {
            errno = ESTALE;
            return error_sys(err, "find what was mounted at %s", absence->paths[i]);
        }
    return 0;
}

/* --- going --- */

static int make_room(struct absence *absence, struct error *err)
{
    int context = (int)syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC);

    if (context < 0)
        return error_sys(err, "make a room");
    if (syscall(SYS_fsconfig, context, FSCONFIG_SET_STRING, "size", "64k", 0) == 0 &&
        syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
        absence->room = (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC,
                                     MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
    int number = errno;

    close(context);
    errno = number;
    if (absence->room < 0 ||
        syscall(SYS_move_mount, absence->room, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return error_sys(err, "make a room");
    return 0;
}

static int move_away(const struct absence *absence, size_t number)
{
    struct place place = place_of(number);
    bool file = absence->list->items[number].flags & ASIDE_FILE;

    if (file ? mknodat(absence->room, place.name, S_IFREG | 0600, 0) < 0
             : mkdirat(absence->room, place.name, 0700) < 0)
        return -1;
    return (int)syscall(SYS_move_mount, AT_FDCWD, absence->paths[number], absence->room, place.name,
                        MOVE_MOUNT_F_SYMLINKS);
}

static int move_out(struct absence *absence, struct error *err)
{
    while (absence->first_away > 1) {
        if (move_away(absence, absence->first_away - 1) < 0)
            return error_sys(err, "move %s away", absence->paths[absence->first_away - 1]);
        absence->first_away--;
    }
    if (mkdirat(absence->room, OLD_ROOT, 0700) < 0 || fchdir(absence->room) < 0 ||
        syscall(SYS_pivot_root, ".", OLD_ROOT) < 0)
        return error_sys(err, "step aside");
    absence->first_away = 0;
    return 0;
}

static struct place place_away(size_t number)
{
    return number ? place_of(number) : (struct place){ OLD_ROOT };
}

static int unmount(const struct absence *absence, size_t number, int flags)
{
    return umount2(is_in_place(absence) ? absence->paths[number] : place_away(number).name, flags);
}

/* One that says EAGAIN has no other user. */
static int check_unused(const struct absence *absence, struct error *err)
{
    for (size_t i = 0; i < absence->list->mounts; i++) {
        if (!is_fresh(absence, i) || (unmount(absence, i, MNT_EXPIRE) < 0 && errno == EAGAIN))
            continue;
        return error_sys(err, "unmount %s", absence->paths[i]);
    }
    return 0;
}

/* --- coming back --- */

static int open_inside(int root, const char *path)
{
    struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };

    return (int)syscall(SYS_openat2, root, path + 1, &how, sizeof how);
}

/* Where to mount, made if it is missing: somebody may have frozen a layer without it. */
static int open_target(int root, const char *path)
{
    char part[4096];
    int fd = open_inside(root, path);

    if (fd >= 0 || errno != ENOENT || strlen(path) >= sizeof part)
        return fd;
    memcpy(part, path + 1, strlen(path));
    for (char *at = part, *slash; at; at = slash ? slash + 1 : NULL) {
        slash = strchr(at, '/');
        if (slash)
            *slash = '\0';
        if (mkdirat(root, part, 0755) == 0)
            (void)fchownat(root, part, 0, 0, AT_SYMLINK_NOFOLLOW); /* where there is a 0 */
        if (slash)
            *slash = '/';
    }
    return open_inside(root, path);
}

static int put_back(const struct absence *absence, size_t number, int root)
{
    int target = open_target(root, absence->paths[number]), fresh = absence->fresh[number], result;

    if (target < 0)
        return -1;
    if (fresh >= 0)
        result = (int)syscall(SYS_move_mount, fresh, "", target, "",
                              MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
    else
        result = (int)syscall(SYS_move_mount, absence->room, place_of(number).name, target, "",
                              MOVE_MOUNT_T_EMPTY_PATH);
    int reason = errno;

    close(target);
    errno = reason;
    return result;
}

static int put_all_back(const struct absence *absence, int root, struct error *err)
{
    for (size_t i = absence->first_away ? absence->first_away : 1; i < absence->list->mounts; i++)
        if (put_back(absence, i, root) < 0)
            return error_sys(err, "mount %s again", absence->paths[i]);
    return 0;
}

/* Makes `root` ours, with all that belongs into it, and leaves the room. */
static int move_in(const struct absence *absence, int root, struct error *err)
{
    if (put_all_back(absence, root, err) < 0)
        return -1;
    if (fchdir(root) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 ||
        chdir("/") < 0)
        return error_sys(err, "leave the room");
    return 0;
}

/* As if we had never gone. */
static int undo(const struct absence *absence, struct error *err)
{
    bool away = absence->first_away == 0;
    int root = open(away ? OLD_ROOT : "/", O_PATH | O_DIRECTORY | O_CLOEXEC), result;

    if (root < 0)
        return error_sys(err, "find the old root");
    if (away)
        result = move_in(absence, root, err);
    else if ((result = put_all_back(absence, root, err)) == 0 && umount2("/", MNT_DETACH) < 0)
        result = error_sys(err, "leave the room");
    close(root);
    return result;
}

/* --- the keeper --- */

static void answer(int status, const struct error *error)
{
    struct message message = { .kind = MESSAGE_ASIDE, .status = status };

    if (error)
        message.error = *error;
    wire_send(PROTOCOL_INIT_FD, &message, NULL, 0);
}

static _Noreturn void give_up(const struct error *error)
{
    struct message message = { .kind = MESSAGE_FAILED, .status = 125, .error = *error };

    wire_send(PROTOCOL_INIT_FD, &message, NULL, 0);
    _exit(125);
}

static int await_fresh(struct absence *absence, struct error *err)
{
    int fds[PROTOCOL_FDS_MAX];
    struct message message;
    size_t count = 0, used = 0;

    for (size_t i = 0; i < absence->list->mounts; i++) {
        if (!is_fresh(absence, i))
            continue;
        if (used == count) {
            if (wire_receive(PROTOCOL_INIT_FD, &message, fds, &count, err) != WIRE_MESSAGE)
                _exit(0); /* the keeper is gone */
            used = 0;
            if (message.kind != MESSAGE_ATTACH || !count)
                return error_set(err, ERROR_INVALID, "mounts were awaited, and %u came", message.kind);
        }
        absence->fresh[i] = fds[used++];
    }
    return used == count ? 0 : error_set(err, ERROR_INVALID, "there are more mounts than places");
}

static int say_mounted(struct error *err)
{
    struct message message = { .kind = MESSAGE_MOUNTED };
    int list = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);

    if (list < 0 || wire_send(PROTOCOL_INIT_FD, &message, &list, 1) < 0)
        return error_sys(err, "tell the keeper what is mounted");
    close(list); /* it holds our root */
    return 0;
}

/* --- all of it --- */

static void forget(struct absence *absence)
{
    for (size_t i = 0; i < ASIDE_MOUNTS_MAX; i++)
        if (absence->fresh[i] >= 0)
            close(absence->fresh[i]);
    if (absence->room >= 0)
        close(absence->room);
    if (absence->size > sizeof usual)
        munmap((void *)(uintptr_t)absence->list, absence->size);
}

static int step_aside(struct absence *absence, struct error *err)
{
    struct error lost;

    if (check_alone(err) < 0 || check_places(absence, err) < 0)
        return -1;
    if (is_in_place(absence))
        return check_unused(absence, err);
    if (make_room(absence, err) < 0)
        return -1;
    if (move_out(absence, err) == 0 && check_unused(absence, err) == 0)
        return 0;
    if (undo(absence, &lost) < 0)
        give_up(&lost);
    return -1;
}

static int renew_domain(const struct absence *absence, struct error *err)
{
    const struct aside_list *list = absence->list;

    if (list->landlock_abi <= 0)
        return 0;

    int rules = domain_build(list->landlock_abi, absence->writable, list->writable, err);

    if (rules < 0)
        return -1;
    if (dup3(rules, PROTOCOL_LANDLOCK_FD, O_CLOEXEC) < 0)
        return error_sys(err, "take the new Landlock rules");
    close(rules);
    return 0;
}

static int attach_in_place(const struct absence *absence, struct error *err)
{
    int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), result = 0;

    if (root < 0)
        return error_sys(err, "open the root");
    for (size_t i = 0; result == 0 && i < absence->list->mounts; i++)
        if (put_back(absence, i, root) < 0)
            result = error_sys(err, "mount %s again", absence->paths[i]);
    close(root);
    return result;
}

/* There is nothing to go back to from here on. */
static int exchange(struct absence *absence, struct error *err)
{
    for (size_t i = absence->list->mounts; i--;)
        if (is_fresh(absence, i) && unmount(absence, i, 0) < 0)
            return error_sys(err, "unmount %s", absence->paths[i]);
    answer(0, NULL);
    if (await_fresh(absence, err) < 0)
        return -1;
    if (is_in_place(absence))
        return attach_in_place(absence, err);
    if (syscall(SYS_move_mount, absence->fresh[0], "", AT_FDCWD, OLD_ROOT, MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return error_sys(err, "attach the new root");
    return move_in(absence, absence->fresh[0], err);
}

void switch_layers(const int *fds, size_t count)
{
    static struct absence absence;
    struct error err = { 0 };

    if (count != 1 || read_list(&absence, fds[0], &err) < 0)
        give_up(&err);
    if (step_aside(&absence, &err) < 0)
        answer(err.sys_errno ? err.sys_errno : EINVAL, &err);
    else if (exchange(&absence, &err) < 0 || say_mounted(&err) < 0 || renew_domain(&absence, &err) < 0)
        give_up(&err);
    else if (spawner_is_used()) /* by now the keeper reads our mounts back */
        spawner_get_ready(absence.list->landlock_abi > 0);
    forget(&absence);
}
