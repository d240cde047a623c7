"""Small disks: to be filled, or to lie on another file system."""
import os
import platform


def root_shifts_memory():
    """Whether root's sandboxes can lie in memory: ids of a tmpfs can be shifted since Linux 6.3."""
    return tuple(map(int, platform.release().split(".")[:2])) >= (6, 3)


def mount_small(where, mebibytes, mode="700"):
    """A command for the shell of a mount namespace of its own: mounts a disk of that size on `where`, which is an
    empty directory.  It lies in memory, or in a file beside `where` if root could not use it otherwise."""
    if os.geteuid() != 0 or root_shifts_memory():
        return f"mount -t tmpfs -o size={mebibytes}m,mode={mode} small {where}"
    return (f"mke2fs -q -F -t ext4 -O ^has_journal -m 0 {where}.disk {mebibytes}M >/dev/null && "
            f"mount -o loop {where}.disk {where} && rmdir {where}/lost+found && chmod {mode} {where}")
