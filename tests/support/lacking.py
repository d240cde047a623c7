"""A host made of this one that lacks a system call: an older kernel, or somebody's filter around us."""
import errno

from support.harness import PROBES

# What is newer than Linux 2.6.39, and some that filters of containers take away.
CALLS = {"openat2": 437, "clone3": 435, "close_range": 436, "landlock_create_ruleset": 444, "landlock_add_rule": 445, "landlock_restrict_self": 446, "mount_setattr": 442,
         "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "pidfd_open": 434, "pidfd_send_signal": 424, "pidfd_getfd": 438,
         "execveat": 322, "memfd_create": 319, "statx": 332, "faccessat2": 439, "copy_file_range": 326, "renameat2": 316, "process_madvise": 440, "name_to_handle_at": 303,
         "fchmodat2": 452, "getrandom": 318, "seccomp": 317, "syncfs": 306, "prlimit64": 302, "epoll_pwait2": 441, "process_vm_readv": 310, "statmount": 457, "listmount": 458,
         "rseq": 334, "io_uring_setup": 425, "kcmp": 312, "setns": 308, "unshare": 272, "mount": 165, "umount2": 166, "pivot_root": 155, "capset": 126, "prctl": 157, "ioctl": 16,
         "mkdirat": 258, "sethostname": 170, "inotify_init1": 294, "timerfd_create": 283, "signalfd4": 289, "flock": 73, "lgetxattr": 192, "splice": 275, "sendfile": 40,
         "fallocate": 285, "preadv2": 327, "sched_setaffinity": 203, "memfd_secret": 447}


def without(name, error=errno.ENOSYS, *only):
    """A prefix for a command: to it the call fails, always or where an argument is so."""
    return [str(PROBES / "without-call"), str(CALLS[name]), str(error), *map(str, only), "--"]
