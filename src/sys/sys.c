#include "sys/sys.h"

#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

/* The kernel writes *out_pidfd.  NOLINTNEXTLINE(readability-non-const-parameter) */
pid_t sys_clone(uint64_t flags, int cgroup, int *out_pidfd)
{
    struct clone_args args = {
        .flags = flags | CLONE_PIDFD | CLONE_CLEAR_SIGHAND | (cgroup >= 0 ? CLONE_INTO_CGROUP : 0),
        .cgroup = cgroup >= 0 ? (uint64_t)cgroup : 0,
        .pidfd = (uint64_t)(uintptr_t)out_pidfd,
        .exit_signal = SIGCHLD,
    };

    return (pid_t)syscall(SYS_clone3, &args, sizeof args);
}

int sys_own_user_namespace(void)
{
    char uids[64], gids[64];

    snprintf(uids, sizeof uids, "%u %u 1", geteuid(), geteuid());
    snprintf(gids, sizeof gids, "%u %u 1", getegid(), getegid());
    if (syscall(SYS_unshare, CLONE_NEWUSER) < 0 ||
        sys_write_file(AT_FDCWD, "/proc/self/setgroups", "deny") < 0 ||
        sys_write_file(AT_FDCWD, "/proc/self/uid_map", uids) < 0)
        return -1;
    return sys_write_file(AT_FDCWD, "/proc/self/gid_map", gids);
}

int sys_openat2(int dir, const char *path, uint64_t flags, uint64_t resolve)
{
    struct open_how how = { .flags = flags | O_CLOEXEC, .resolve = resolve };

    return (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
}

int sys_open_beneath(int dir, const char *path, uint64_t flags)
{
    return sys_openat2(dir, *path ? path : ".", flags | O_NOFOLLOW,
                       RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
}

int sys_open_on_mount(int dir, const char *path, uint64_t flags)
{
    return sys_openat2(dir, *path ? path : ".", flags | O_NOFOLLOW,
                       RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

const struct dirent *sys_next_entry(DIR *entries)
{
    const struct dirent *entry;

    do {
        errno = 0;
        entry = readdir(entries);
    } while (entry && is_dots(entry->d_name));
    return entry;
}

int sys_pivot_root(const char *new_root, const char *put_old)
{
    return (int)syscall(SYS_pivot_root, new_root, put_old);
}

int sys_pidfd_kill(int pidfd, int signal)
{
    return (int)syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0);
}

uint64_t sys_mount_id(int dir, const char *path)
{
    struct statx status;

    if (statx(dir, path, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW, STATX_MNT_ID, &status) < 0)
        return 0;
    if (!(status.stx_mask & STATX_MNT_ID)) {
        errno = ENOSYS; /* before Linux 5.8 */
        return 0;
    }
    return status.stx_mnt_id;
}

int sys_open_tree(int dir, const char *path, unsigned flags)
{
    return open_tree(dir, path, flags | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
}

int sys_move_mount(int from, int to)
{
    return move_mount(from, "", to, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
}

int sys_mount_attr(int fd, uint64_t set, uint64_t clear, int userns)
{
    struct mount_attr attr = {
        .attr_set = set | (userns >= 0 ? MOUNT_ATTR_IDMAP : 0),
        .attr_clr = clear,
        .userns_fd = (uint64_t)(userns >= 0 ? userns : 0),
    };

    return mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof attr);
}

int sys_landlock_abi(void)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

    return abi < 0 ? 0 : (int)abi;
}

int sys_landlock_create(const void *attr, size_t size)
{
    return (int)syscall(SYS_landlock_create_ruleset, attr, size, 0);
}

int sys_landlock_path(int ruleset, int path, uint64_t access)
{
    struct landlock_path_beneath_attr rule = { .allowed_access = access, .parent_fd = path };

    return (int)syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
}

int sys_capabilities_get(uint64_t *effective, uint64_t *permitted, uint64_t *inheritable)
{
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct data[2];

    if (syscall(SYS_capget, &header, data) < 0)
        return -1;
    *effective = data[0].effective | (uint64_t)data[1].effective << 32;
    *permitted = data[0].permitted | (uint64_t)data[1].permitted << 32;
    *inheritable = data[0].inheritable | (uint64_t)data[1].inheritable << 32;
    return 0;
}

int sys_capabilities_set(uint64_t effective, uint64_t permitted, uint64_t inheritable)
{
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct data[2] = {
        { (uint32_t)effective, (uint32_t)permitted, (uint32_t)inheritable },
        { (uint32_t)(effective >> 32), (uint32_t)(permitted >> 32), (uint32_t)(inheritable >> 32) },
    };

    return (int)syscall(SYS_capset, &header, data);
}

int sys_sealed_memfd(const char *name, const void *bytes, size_t size)
{
    /* Said aloud since Linux 6.3, else vm.memfd_noexec=1 takes the right away. */
    autoclose int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
    const char *at = bytes;

    if (fd < 0 && errno == EINVAL)
        fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -1;
    while (size) {
        ssize_t wrote = write(fd, at, size);

        if (wrote < 0)
            return -1;
        at += wrote;
        size -= (size_t)wrote;
    }
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
        return -1;
    return steal_fd(&fd);
}

struct fd_path sys_fd_path(int fd)
{
    struct fd_path path;

    snprintf(path.text, sizeof path.text, "/proc/self/fd/%d", fd);
    return path;
}

int sys_write_file(int dir, const char *path, const char *content)
{
    autoclose int fd = openat(dir, path, O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return -1;
    return write(fd, content, strlen(content)) < 0 ? -1 : 0;
}
