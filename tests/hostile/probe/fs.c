/* Files, mounts, devices. */

#include "probe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

static int list_entry(const char *path, const struct stat *status, int type, struct FTW *ftw)
{
    (void)ftw;
    if (type == FTW_NS)
        return 0;
    say("entry", "%c %04o %s",
        S_ISDIR(status->st_mode)    ? 'd'
        : S_ISREG(status->st_mode)  ? 'f'
        : S_ISLNK(status->st_mode)  ? 'l'
        : S_ISSOCK(status->st_mode) ? 's'
        : S_ISFIFO(status->st_mode) ? 'p'
        : S_ISCHR(status->st_mode)  ? 'c'
                                    : 'b',
        status->st_mode & 07777, path);
    return 0;
}

static int walk(int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        nftw(argv[i], list_entry, 32, FTW_PHYS);
    return 0;
}

static int list(int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        DIR *dir = opendir(argv[i]);

        for (struct dirent *entry; dir && (entry = readdir(dir));)
            if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
                say(argv[i], "%s", entry->d_name);
        if (dir)
            closedir(dir);
    }
    return 0;
}

static int special_only(const char *path, const struct stat *status, int type, struct FTW *ftw)
{
    (void)ftw;
    if (type != FTW_NS && (S_ISSOCK(status->st_mode) || S_ISCHR(status->st_mode) || S_ISBLK(status->st_mode)))
        list_entry(path, status, type, NULL);
    return 0;
}

static int special(int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        nftw(argv[i], special_only, 32, FTW_PHYS);
    say("walked", "yes");
    return 0;
}

/* Prints what the paths hold, whatever it is: the host looks for its tokens in it. */
static int spill(int argc, char **argv)
{
    static char buffer[1 << 16];

    for (int i = 0; i < argc; i++) {
        int fd = open(argv[i], O_RDONLY | O_NONBLOCK);
        ssize_t got = fd < 0 ? -1 : read(fd, buffer, sizeof buffer);

        chkf(got, "read:%s", argv[i]);
        if (got > 0)
            fwrite(buffer, 1, (size_t)got, stdout);
        if (fd >= 0)
            close(fd);
    }
    fflush(stdout);
    return 0;
}

static int spill_entry(const char *path, const struct stat *status, int type, struct FTW *ftw)
{
    char *one[] = { (char *)(uintptr_t)path };

    (void)ftw;
    if (type == FTW_F && S_ISREG(status->st_mode) && status->st_size < 1 << 20)
        spill(1, one);
    return 0;
}

static int spill_below(int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        nftw(argv[i], spill_entry, 32, FTW_PHYS);
    return 0;
}

static void try_open(const char *step, const char *path, int flags)
{
    int fd = open(path, flags, 0644);

    chk(step, fd);
    if (fd >= 0)
        close(fd);
}

/* Everything that changes a file or directory `file` in `dir`; `out` is a writable directory. */
static int change(int argc, char **argv)
{
    const char *dir = argc > 0 ? argv[0] : ".", *out = argc > 1 ? argv[1] : "/tmp";
    char file[4096], other[4096], mine[4096], made[4096];
    struct timespec times[2] = { { 1, 0 }, { 1, 0 } };
    int flags = FS_NOATIME_FL, from, to;

    snprintf(file, sizeof file, "%s/file", dir);
    snprintf(other, sizeof other, "%s/other", dir);
    snprintf(made, sizeof made, "%s/made", dir);
    snprintf(mine, sizeof mine, "%s/mine", out);
    close(open(mine, O_WRONLY | O_CREAT, 0644));

    chk("chmod", chmod(file, 0600));
    chk("chown", chown(file, getuid(), getgid()));
    chk("utimens", utimensat(AT_FDCWD, file, times, 0));
    chk("setxattr", setxattr(file, "user.attack", "x", 1, 0));
    from = open(file, O_RDONLY);
    chk("setflags", ioctl(from, FS_IOC_SETFLAGS, &flags));
    chk("fchmod", fchmod(from, 0600));
    close(from);
    try_open("open-write", file, O_WRONLY);
    try_open("open-rdwr", file, O_RDWR);
    try_open("open-append", file, O_WRONLY | O_APPEND);
    chk("truncate", truncate(file, 1));
    try_open("creat", made, O_WRONLY | O_CREAT | O_EXCL);
    try_open("tmpfile", dir, O_WRONLY | O_TMPFILE);
    snprintf(made, sizeof made, "%s/made-dir", dir);
    chk("mkdir", mkdir(made, 0755));
    snprintf(made, sizeof made, "%s/made-fifo", dir);
    chk("mkfifo", mkfifo(made, 0644));
    snprintf(made, sizeof made, "%s/made-link", dir);
    chk("symlink", symlink("/etc/passwd", made));
    snprintf(made, sizeof made, "%s/made-hard", dir);
    chk("link-within", link(file, made));
    chk("link-in", link(mine, made));
    snprintf(made, sizeof made, "%s/taken", out);
    chk("link-out", link(file, made));
    chk("exchange", syscall(SYS_renameat2, AT_FDCWD, file, AT_FDCWD, other, RENAME_EXCHANGE));
    from = open(file, O_RDWR);
    if (from >= 0) {
        char *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, from, 0);

        chk("fallocate", fallocate(from, 0, 0, 8192));
        if (map != MAP_FAILED)
            map[0] = 'X';
        chk("mmap-write", map == MAP_FAILED ? -1 : 0);
        to = open(mine, O_RDONLY);
        chk("copy_file_range", copy_file_range(to, NULL, from, NULL, 1, 0));
        chk("ficlone", ioctl(from, FICLONE, to));
        close(to);
        close(from);
    } else {
        from = open(file, O_RDONLY);
        chk("mmap-write", mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, from, 0) == MAP_FAILED ? -1 : 0);
        close(from);
    }
    chk("rename-out", rename(other, made));
    snprintf(made, sizeof made, "%s/in", dir);
    chk("rename-in", rename(mine, made));
    chk("unlink", unlink(file));
    snprintf(made, sizeof made, "%s/sub", dir);
    chk("rmdir", rmdir(made));
    return 0;
}

static int remount(int argc, char **argv)
{
    (void)argc, (void)argv;
    mkdir("/tmp/m", 0755);
    chk("mount-tmpfs", mount("none", "/tmp/m", "tmpfs", 0, NULL));
    chk("mount-bind", mount("/usr", "/tmp/m", NULL, MS_BIND, NULL));
    chk("mount-remount", mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND, NULL));
    chk("mount-private", mount(NULL, "/", NULL, MS_PRIVATE, NULL));
    chk("mount-move", mount("/tmp/m", "/tmp", NULL, MS_MOVE, NULL));
    chk("umount", umount2("/proc", MNT_DETACH));
    chk("umount-sys", umount2("/proc/sys", MNT_DETACH));
    chk("pivot_root", syscall(SYS_pivot_root, "/tmp", "/tmp/m"));
    chk("chroot", chroot("/tmp"));
    chk("open_tree", call3(428, -100, (long)"/", 1 /* OPEN_TREE_CLONE */));
    chk("move_mount", call3(429, -100, BAD_NUMBER, -100));
    chk("fsopen", call3(430, (long)"tmpfs", 0, 0));
    chk("fsmount", call3(432, -1, 0, 0));
    chk("fspick", call3(433, -100, (long)"/", 0));
    chk("mount_setattr", call3(442, -100, (long)"/", 0));
    chk("open_tree_attr", call3(467, -100, (long)"/", 1));
    return 0;
}

static int overwrite(int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        int fd = open(argv[i], O_WRONLY | O_TRUNC | O_CREAT, 0644);

        chkf(fd < 0 ? -1 : write(fd, "attacked\n", 9), "overwrite:%s", argv[i]);
        if (fd >= 0)
            close(fd);
    }
    return 0;
}

static int rename_all(int argc, char **argv)
{
    for (int i = 0; i + 1 < argc; i += 2)
        chkf(rename(argv[i], argv[i + 1]), "rename:%s", argv[i]);
    return 0;
}

/* Each name as a file, a directory, a link and a pipe in turn; the last one stays. */
static int plant(int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        for (char *slash = argv[i]; (slash = strchr(slash + 1, '/'));) {
            *slash = '\0';
            mkdir(argv[i], 0755);
            *slash = '/';
        }
        unlink(argv[i]);
        chkf(mkfifo(argv[i], 0644), "fifo:%s", argv[i]);
        unlink(argv[i]);
        chkf(mkdir(argv[i], 0755), "dir:%s", argv[i]);
        rmdir(argv[i]);
        chkf(symlink("/etc/passwd", argv[i]), "symlink:%s", argv[i]);
        unlink(argv[i]);
        int fd = open(argv[i], O_WRONLY | O_CREAT | O_EXCL, 0755);

        chkf(fd < 0 ? -1 : write(fd, "#!/bin/sh\n", 10), "file:%s", argv[i]);
        if (fd >= 0)
            close(fd);
    }
    return 0;
}

static int nodes(int argc, char **argv)
{
    static const struct {
        const char *name;
        mode_t type;
        unsigned major, minor;
    } wanted[] = { { "c1:1", S_IFCHR, 1, 1 },
                   { "c1:3", S_IFCHR, 1, 3 },
                   { "b8:0", S_IFBLK, 8, 0 },
                   { "c0:0", S_IFCHR, 0, 0 },
                   { "c10:229", S_IFCHR, 10, 229 } };

    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        chkf(mknod("/dev/shm/node", wanted[i].type | 0666, makedev(wanted[i].major, wanted[i].minor)),
             "mknod:%s", wanted[i].name);
        unlink("/dev/shm/node");
        chkf(mknodat(AT_FDCWD, "/dev/shm/node", wanted[i].type | 0666,
                     makedev(wanted[i].major, wanted[i].minor)),
             "mknodat:%s", wanted[i].name);
        unlink("/dev/shm/node");
    }
    for (int i = 0; i < argc; i++)
        chkf(open(argv[i], O_RDWR | O_NONBLOCK), "open:%s", argv[i]);
    return 0; /* the nodes were tried in a tmpfs: overlayfs makes no whiteouts for anybody */
}

static int devices(int argc, char **argv)
{
    const char *where = argc > 0 ? argv[0] : "/dev";
    DIR *dir = opendir(where);

    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        struct stat status;
        char path[300];

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", where, entry->d_name);
        if (lstat(path, &status) < 0)
            continue;
        int fd = S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode) ? open(path, O_RDWR | O_NONBLOCK | O_NOCTTY)
                                                                    : -2;

        say("dev", "%s %o %u:%u %s", entry->d_name, status.st_mode & S_IFMT, major(status.st_rdev),
            minor(status.st_rdev),
            fd >= 0    ? "opens"
            : fd == -2 ? "-"
                       : strerror(errno));
        if (fd >= 0) {
            chkf(ioctl(fd, 0x4c82 /* LOOP_CTL_GET_FREE */, 0), "ioctl-loop:%s", entry->d_name);
            chkf(ioctl(fd, 0xae00 /* KVM_GET_API_VERSION */, 0), "ioctl-kvm:%s", entry->d_name);
            close(fd);
        }
    }
    if (dir)
        closedir(dir);
    return 0;
}

static int handles(int argc, char **argv)
{
    struct {
        struct file_handle head;
        unsigned char bytes[128];
    } handle = { .head.handle_bytes = 128 };
    int id = 0, root = open("/", O_RDONLY), opened = 0;

    (void)argc, (void)argv;
    chk("name_to_handle", name_to_handle_at(AT_FDCWD, "/", &handle.head, &id, 0));
    chk("bad-handle", call3(SYS_open_by_handle_at, root, BAD_NUMBER, O_RDONLY));
    for (unsigned i = 0; i < 100000; i++) {
        memcpy(handle.bytes, &i, sizeof i);
        opened += open_by_handle_at(root, &handle.head, O_RDONLY) >= 0;
    }
    say("opened", "%d", opened);
    return 0;
}

static int make_named(const char *name)
{
    int fd = open(name, O_WRONLY | O_CREAT, 0644);

    if (fd >= 0)
        close(fd);
    return fd;
}

static int names(int argc, char **argv)
{
    static const char *const odd[] = { "new\nline",
                                       "esc\033[31m\033]0;owned\007",
                                       "\xff\xfe\x80",
                                       "-rf",
                                       "..foo",
                                       "trail ",
                                       "a\tb",
                                       " ",
                                       "\\",
                                       "$(x)",
                                       "`x`",
                                       ";",
                                       "*" };
    int depth = argc > 0 ? atoi(argv[0]) : 4000, entries = argc > 1 ? atoi(argv[1]) : 20000, made = 0;
    char name[300];

    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        chkf(make_named(odd[i]), "name:%zu", i);
    memset(name, 'n', 255);
    name[255] = '\0';
    chk("name:255", make_named(name));
    mkdir("many", 0755);
    for (int i = 0; i < entries; i++) {
        snprintf(name, sizeof name, "many/%d", i);
        made += make_named(name) >= 0;
    }
    say("entries", "%d", made);
    mkdir("closed", 0755);
    chk("name:closed", make_named("closed/file"));
    chmod("closed", 0);
    for (made = 0; made < depth; made++)
        if (mkdir("d", 0755) < 0 || chdir("d") < 0)
            break;
    say("depth", "%d", made);
    make_named("bottom");
    return 0;
}

static int attributes(int argc, char **argv)
{
    static const char *const list_of[] = { "trusted.overlay.opaque",  "user.overlay.opaque",
                                           "user.overlay.redirect",   "user.overlay.metacopy",
                                           "security.selinux",        "system.posix_acl_access",
                                           "trusted.overlay.redirect" };
    static const unsigned char capability[20] = { 0, 0, 0, 2, 0x80 };
    const char *path = argc > 0 ? argv[0] : ".";

    for (size_t i = 0; i < sizeof list_of / sizeof *list_of; i++)
        chkf(setxattr(path, list_of[i], "y", 1, 0), "%s", list_of[i]);
    chk("security.capability", setxattr(path, "security.capability", capability, sizeof capability, 0));
    say("waiting", "yes");
    char byte;
    while (read(0, &byte, 1) > 0)
        continue;
    return 0;
}

/* Locks and leases on files that the host works with too. */
static int locks(int argc, char **argv)
{
    signal(SIGIO, SIG_IGN); /* "somebody wants the lease back" would end us */
    for (int i = 0; i < argc; i++) {
        int fd = open(argv[i], O_RDONLY);
        struct flock lock = { .l_type = F_RDLCK };

        chkf(syscall(SYS_flock, fd, 2 | 4), "flock:%s", argv[i]);
        chkf(fcntl(fd, F_OFD_SETLK, &lock), "ofd:%s", argv[i]);
        chkf(fcntl(fd, F_SETLEASE, F_RDLCK), "lease:%s", argv[i]);
        chkf(syscall(SYS_fanotify_init, 0, 0), "fanotify:%s", argv[i]);
    }
    say("waiting", "yes");
    char byte;
    while (read(0, &byte, 1) > 0)
        continue;
    return 0;
}

const struct attack fs_attacks[] = {
    { "walk", walk },
    { "list", list },
    { "special", special },
    { "spill", spill },
    { "spill-below", spill_below },
    { "change", change },
    { "remount", remount },
    { "overwrite", overwrite },
    { "rename", rename_all },
    { "plant", plant },
    { "nodes", nodes },
    { "devices", devices },
    { "handles", handles },
    { "names", names },
    { "attributes", attributes },
    { "locks", locks },
    { NULL, NULL },
};
