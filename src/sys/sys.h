#pragma once

/* Thin functions on Linux calls that libc has no name for, or whose plain form invites mistakes.
 * All return what the kernel returns: -1 and errno on failure. */

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* clone3 with CLONE_CLEAR_SIGHAND: the child has default signal handlers, its own memory, and a
 * pidfd for the parent in *out_pidfd.  It begins in the v2 control group `cgroup`; -1: in ours. */
pid_t sys_clone(uint64_t flags, int cgroup, int *out_pidfd);

/* A user namespace of our own, in which our ids are what they are, and we have every right over what is ours:
 * also over directories whose mode keeps their owner out.  Not for a process that shares its memory. */
int sys_own_user_namespace(void);

int sys_openat2(int dir, const char *path, uint64_t flags, uint64_t resolve);

/* Opens what lies beneath `dir`, "" being `dir` itself, with no link on the way and none at the end. */
int sys_open_beneath(int dir, const char *path, uint64_t flags);

/* The same, and never what is mounted there: that is somebody else's, however it came there. */
int sys_open_on_mount(int dir, const char *path, uint64_t flags);

/* The next entry but "." and "..".  NULL at the end with errno 0, or because of the error in errno. */
const struct dirent *sys_next_entry(DIR *entries);
int sys_pivot_root(const char *new_root, const char *put_old);
int sys_pidfd_kill(int pidfd, int signal);

/* The mount that `path` below `dir` ("": `dir` itself) lies on, as /proc/self/mountinfo numbers it;
 * 0 on failure. */
uint64_t sys_mount_id(int dir, const char *path);

/* A copy of the mount below `path`, not attached anywhere. */
int sys_open_tree(int dir, const char *path, unsigned flags);
int sys_move_mount(int from, int to);
int sys_mount_attr(int fd, uint64_t set, uint64_t clear, int userns);

/* Landlock ABI of the running kernel, 0 if it has none or it is off. */
int sys_landlock_abi(void);
int sys_landlock_create(const void *attr, size_t size);
int sys_landlock_path(int ruleset, int path, uint64_t access);

/* The highest capability this kernel knows is CAPS_MAX at most. */
enum { CAPS_MAX = 63 };
int sys_capabilities_get(uint64_t *effective, uint64_t *permitted, uint64_t *inheritable);
int sys_capabilities_set(uint64_t effective, uint64_t permitted, uint64_t inheritable);

/* A memfd that nobody can change any more. */
int sys_sealed_memfd(const char *name, const void *bytes, size_t size);

/* "/proc/self/fd/N": the one spelling of a handle that calls which only take paths accept. */
struct fd_path {
    char text[32];
};
struct fd_path sys_fd_path(int fd);

/* Writes the whole of a small file such as a control file of /proc; one write, no short ones. */
int sys_write_file(int dir, const char *path, const char *content);
