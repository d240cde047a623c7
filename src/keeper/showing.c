#include "keeper/showing.h"

#include "base/array.h"
#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "init/wire.h"
#include "keeper/upper.h"
#include "store/layers.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { LOWERS_MAX = LAYERS_DEPTH_MAX + 3, SHOWN_MAX = 4 };

/* Handles on what an overlay lies on, newest first. */
struct lowers {
    int fds[LOWERS_MAX];
    size_t count;
};

#define autolowers __attribute__((cleanup(lowers_close)))

static void lowers_close(struct lowers *lowers)
{
    while (lowers->count)
        close(lowers->fds[--lowers->count]);
}

/* Read back: what is mounted from here on must not be mounted on the host. */
static int leave_mounts(struct error *err)
{
    struct stat before, after;

    if (stat("/proc/self/ns/mnt", &before) < 0 || unshare(CLONE_NEWNS) < 0 ||
        stat("/proc/self/ns/mnt", &after) < 0)
        return error_sys(err, "make a mount namespace");
    if (before.st_ino == after.st_ino)
        return error_set(err, ERROR_REFUSED, "read back: this is not a mount namespace of its own");
    return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0
               ? error_sys(err, "keep what is mounted here from the host")
               : 0;
}

/* Over the directory of layers: nobody but us sees it there. */
int showing_enter(const char *state, struct showing_stage *out, struct error *err)
{
    autofree char *path = text_format("%s/layers", state);
    autoclose int layers = -1, room = -1;

    umask(0); /* modes are those of what is shown */
    if (leave_mounts(err) < 0)
        return -1;
    layers = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (layers < 0 || mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, "size=16m,mode=700") < 0)
        return error_sys(err, "make a place to look at layers");
    room = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (room < 0 || sys_mount_id(room, "") == sys_mount_id(layers, ""))
        return error_set(err, ERROR_SYSTEM, "the place to look at layers is not where it was mounted");
    *out = (struct showing_stage){ steal_fd(&layers), steal_fd(&room) };
    return 0;
}

/* --- what it lies on --- */

static int add_layers(const struct showing_stage *stage, const struct showing *showing, struct lowers *out,
                      struct error *err)
{
    if (showing->chain->len > LAYERS_DEPTH_MAX)
        return error_set(err, ERROR_INVALID, "too many layers are to be shown");
    for (size_t i = 0; i < showing->chain->len; i++) {
        const char *lid = showing->chain->items[i];
        autofree char *path = text_format("%s/u%llu", lid, (unsigned long long)showing->number);
        int fd = sys_open_beneath(stage->layers, path, O_PATH | O_DIRECTORY);

        if (fd >= 0)
            out->fds[out->count++] = fd;
        else if (errno != ENOENT || faccessat(stage->layers, lid, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
            return error_sys(err, "open the layer %s", lid);
    }
    return 0;
}

static int open_base(const struct showing_stage *stage, const struct showing *showing, struct error *err)
{
    autofree char *path =
        text_format("%s/b%llu", showing->copy ? showing->copy : "", (unsigned long long)showing->number);
    bool copied = showing->copy && *showing->copy;
    autoclose int fd = copied ? sys_open_beneath(stage->layers, path, O_PATH | O_DIRECTORY)
                              : sys_openat2(AT_FDCWD, showing->base, O_PATH | O_DIRECTORY | O_CLOEXEC,
                                            RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
    struct stat status;

    if (fd < 0 || fstat(fd, &status) < 0)
        return error_sys(err, "open %.200s", copied ? "the copy of the workspace" : showing->base);
    if (!copied && (status.st_dev != showing->device || status.st_ino != showing->inode))
        return error_set(err, ERROR_REFUSED, "%.200s is another directory than when the sandbox was made",
                         showing->base);
    return steal_fd(&fd);
}

/* The directories on the way lend their mode to what they lie on, so they have the same. */
static void add_whiteout(int mask, int base, const char *path)
{
    autofree char *part = text_copy(path);
    struct stat status;

    for (char *slash = strchr(part, '/'); slash; *slash = '/', slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (fstatat(base, part, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode))
            (void)mkdirat(mask, part, status.st_mode & 07777);
    }
    (void)mknodat(mask, part, S_IFCHR, makedev(0, 0));
}

static bool is_there(int base, const char *path)
{
    struct stat status;

    return fstatat(base, path, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

/* What is hidden lies between the base and the layers, as it did for the sandbox. */
static int add_mask(const struct showing_stage *stage, const struct showing *showing, int base,
                    struct lowers *out, struct error *err)
{
    autofree char *name = text_format("m%llu", (unsigned long long)showing->number);
    struct stat status;

    if (!showing->hide || !showing->hide->len)
        return 0;
    if (fstat(base, &status) < 0 || (mkdirat(stage->room, name, status.st_mode & 07777) < 0 && errno != EEXIST))
        return error_sys(err, "hide what was hidden");

    int mask = openat(stage->room, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (mask < 0)
        return error_sys(err, "hide what was hidden");
    out->fds[out->count++] = mask;
    for (size_t i = 0; i < showing->hide->len; i++) {
        const char *path = showing->hide->items[i];

        if (!is_there(base, path))
            continue;
        add_whiteout(mask, base, path);
        if (!is_there(mask, path))
            return error_set(err, ERROR_SYSTEM, "hide what was hidden: %.200s", path);
    }
    return 0;
}

/* An overlay that has no upper directory needs two others. */
static int add_empty(const struct showing_stage *stage, struct lowers *out, struct error *err)
{
    if (mkdirat(stage->room, "empty", 0755) < 0 && errno != EEXIST)
        return error_sys(err, "make an empty directory");

    int fd = openat(stage->room, "empty", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return error_sys(err, "make an empty directory");
    out->fds[out->count++] = fd;
    return 0;
}

static int gather(const struct showing_stage *stage, const struct showing *showing, struct lowers *out,
                  struct error *err)
{
    autoclose int base = open_base(stage, showing, err);

    if (base < 0 || add_layers(stage, showing, out, err) < 0 || add_mask(stage, showing, base, out, err) < 0)
        return -1;
    out->fds[out->count++] = steal_fd(&base);
    return add_empty(stage, out, err);
}

int showing_mount(const struct showing_stage *stage, const struct showing *showing, struct error *err)
{
    static const char *const options[] = { "userxattr", "redirect_dir=nofollow,index=off,metacopy=off" };
    autolowers struct lowers lowers = { .count = 0 };
    autotext struct text text = TEXT_NONE;
    autoclose int spot = -1, made = -1;

    if (gather(stage, showing, &lowers, err) < 0)
        return -1;
    text_addf(&text, "%s,lowerdir=", options[showing->trusted]);
    for (size_t i = 0; i < lowers.count; i++)
        text_addf(&text, "%s%s", i ? ":" : "", sys_fd_path(lowers.fds[i]).text);
    if (mkdirat(stage->room, "spot", 0700) < 0 && errno != EEXIST)
        return error_sys(err, "make a place to look at layers");
    spot = openat(stage->room, "spot", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (spot < 0 || mount("overlay", sys_fd_path(spot).text, "overlay",
                          MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, text_string(&text)) < 0)
        return error_sys(err, "show what the layers hold");
    made = openat(stage->room, "spot", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (made < 0 || sys_mount_id(made, "") == sys_mount_id(spot, ""))
        return error_set(err, ERROR_SYSTEM, "what the layers hold is not where it was mounted");

    int copy = sys_open_tree(made, "", AT_EMPTY_PATH);

    return copy < 0 ? error_sys(err, "take what the layers hold") : copy;
}

/* --- apart --- */

struct shown {
    const struct showing *showings;
    size_t count;
    int answer;
};

static int show_all(const struct shown *shown, int *fds, size_t *count, struct error *err)
{
    struct showing_stage stage = { -1, -1 };

    if (showing_enter(shown->showings[0].state, &stage, err) < 0)
        return -1;
    for (; *count < shown->count; ++*count) {
        fds[*count] = showing_mount(&stage, &shown->showings[*count], err);
        if (fds[*count] < 0)
            return -1;
    }
    return 0;
}

static int show(void *argument)
{
    const struct shown *shown = argument;
    struct error error = { 0 };
    int fds[SHOWN_MAX];
    size_t count = 0;

    if (show_all(shown, fds, &count, &error) == 0)
        error.kind = ERROR_NONE;
    else
        count = 0;
    return wire_put(shown->answer, &error, sizeof error, fds, count);
}

int showing_open(const struct ids *ids, const struct showing *showings, size_t count, int *fds,
                 struct error *err)
{
    int pair[2], got[PROTOCOL_FDS_MAX];
    struct shown shown = { showings, count, -1 };
    struct error said;
    size_t have = 0;

    if (!count || count > SHOWN_MAX)
        return error_set(err, ERROR_INVALID, "%zu trees are to be shown", count);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return error_sys(err, "make sockets");

    autoclose int mine = pair[0], its = pair[1];

    shown.answer = its;
    if (upper_act(ids, show, &shown, err) < 0)
        return -1;
    close(steal_fd(&its));
    if (wire_take(mine, &said, sizeof said, got, &have, err) != WIRE_MESSAGE)
        return error_set(err, ERROR_SYSTEM, "looking at layers died");
    if (have == count) {
        memcpy(fds, got, count * sizeof *got);
        return 0;
    }
    for (size_t i = 0; i < have; i++)
        close(got[i]);
    *err = said;
    return -1;
}
