#include "limits/processes.h"

#include "base/array.h"
#include "base/own.h"
#include "base/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { LOOKED_AT_MAX = 20000, REMEMBERED_MAX = 4096, LISTED_MAX = 256 << 10 };

/* One who is in the sandbox.  `pid` is a thread that still has memory: the first one may have ended, and shows
 * nothing any more. */
struct member {
    pid_t process, pid;
    pid_t parent; /* its `pid`; 0: of PID 1 */
    int dir;      /* /proc/PID, while it is looked at */
};

struct members {
    struct member *items;
    size_t len, cap;
};

static void members_free(struct members *members)
{
    free(members->items);
}

static ssize_t read_file(int dir, const char *name, char *out, size_t size)
{
    autoclose int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    size_t len = 0;
    ssize_t got;

    if (fd < 0)
        return -1;
    while (len < size - 1 && (got = read(fd, out + len, size - 1 - len)) > 0)
        len += (size_t)got;
    out[len] = '\0';
    return (ssize_t)len;
}

static void add_listed(const char *list, pid_t parent, struct members *members)
{
    for (char *end; *list && members->len < LOOKED_AT_MAX; list = end) {
        pid_t pid = (pid_t)strtol(list, &end, 10);

        if (end == list)
            return;
        *array_add(members) = (struct member){ .process = pid, .pid = pid, .parent = parent, .dir = -1 };
        end += *end == ' ';
    }
}

static DIR *open_list(int dir, const char *name)
{
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 ? NULL : fdopendir(fd);
}

/* Children belong to the thread that made them. */
static void add_children(int process, pid_t parent, char *buffer, struct members *members)
{
    autoclosedir DIR *dir = open_list(process, "task");
    const struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        char name[300];

        snprintf(name, sizeof name, "%s/children", entry->d_name);
        if (*entry->d_name != '.' && read_file(dirfd(dir), name, buffer, LISTED_MAX) > 0)
            add_listed(buffer, parent, members);
    }
}

/* Threads are not listed in /proc, but each can be opened there. */
static int open_process(pid_t pid)
{
    char path[32];

    snprintf(path, sizeof path, "/proc/%d", pid);
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static bool has_memory(int process)
{
    char size[64];

    return read_file(process, "statm", size, sizeof size) > 0 && *size != '0';
}

/* The first of its threads that has not ended; else the process stays as it is. */
static void find_thread(struct member *member)
{
    autoclosedir DIR *dir = open_list(member->dir, "task");
    const struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        autoclose int thread = pid > 0 ? open_process(pid) : -1;

        if (thread < 0 || !has_memory(thread))
            continue;
        close(member->dir);
        member->dir = steal_fd(&thread);
        member->pid = pid;
        return;
    }
}

static bool same(int what, pid_t one, pid_t other)
{
    return syscall(SYS_kcmp, one, other, what, 0UL, 0UL) == 0;
}

/* Calls `look` for everybody below `init`, and for `init` itself. */
static void walk(pid_t init, void (*look)(const struct member *member, char *buffer, void *owner), void *owner)
{
    __attribute__((cleanup(members_free))) struct members members = { 0 };
    autofree char *buffer = memory_resize(NULL, LISTED_MAX);

    *array_add(&members) = (struct member){ .process = init, .pid = init };
    for (size_t i = 0; i < members.len; i++) {
        struct member member = members.items[i];
        autoclose int process = open_process(member.process);

        if (process < 0)
            continue;
        member.dir = fcntl(process, F_DUPFD_CLOEXEC, 0);
        if (!has_memory(member.dir))
            find_thread(&member);
        look(&member, buffer, owner);
        own_close(&member.dir);
        add_children(process, member.pid, buffer, &members);
    }
}

bool processes_can_be_seen(void)
{
    return access("/proc/thread-self/children", R_OK) == 0;
}

/* A line of a file of /proc: "RssAnon:   12 kB". */
static uint64_t line_value(const char *content, const char *key)
{
    const char *at = strstr(content, key);

    return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

static void look_at_status(const struct member *member, char *buffer, void *owner)
{
    struct processes *sum = owner;

    if (read_file(member->dir, "status", buffer, LISTED_MAX) <= 0)
        return;
    sum->anonymous += (line_value(buffer, "\nRssAnon:") + line_value(buffer, "\nVmSwap:")) * 1024;
    sum->shared += line_value(buffer, "\nRssShmem:") * 1024;
    sum->count += line_value(buffer, "\nThreads:");
}

void processes_look(pid_t init, struct processes *out)
{
    *out = (struct processes){ 0 };
    walk(init, look_at_status, out);
    out->count -= out->count > 0; /* PID 1 */
}

/* Who was made by vfork() has its parent's memory, until it runs another program. */
static void look_at_pages(const struct member *member, char *buffer, void *owner)
{
    struct processes *sum = owner;

    if (member->parent && same(KCMP_VM, member->parent, member->pid))
        return;
    if (read_file(member->dir, "smaps_rollup", buffer, LISTED_MAX) <= 0) {
        look_at_status(member, buffer, owner);
        return;
    }
    sum->anonymous += (line_value(buffer, "\nPss_Anon:") + line_value(buffer, "\nSwapPss:")) * 1024;
    sum->shared += line_value(buffer, "\nPss_Shmem:") * 1024;
}

void processes_look_closer(pid_t init, struct processes *out)
{
    *out = (struct processes){ 0 };
    walk(init, look_at_pages, out);
}

struct file_id {
    dev_t device;
    ino_t inode;
};

struct unlinked_walk {
    struct file_id *items;
    size_t len, cap;
    struct unlinked *sum;
};

static bool is_in_memory(int dir, const char *name)
{
    autoclose int fd = openat(dir, name, O_PATH | O_CLOEXEC);
    struct statfs info;

    return fd >= 0 && fstatfs(fd, &info) == 0 && (info.f_type == TMPFS_MAGIC || info.f_type == HUGETLBFS_MAGIC);
}

/* A descriptor is inherited: each file counts once, unless there are more of them than any tool has. */
static bool is_new(struct unlinked_walk *walk, const struct stat *info)
{
    if (!S_ISREG(info->st_mode) || info->st_nlink > 0 || info->st_blocks == 0)
        return false;
    for (size_t i = 0; i < walk->len; i++)
        if (walk->items[i].device == info->st_dev && walk->items[i].inode == info->st_ino)
            return false;
    if (walk->len < REMEMBERED_MAX)
        *array_add(walk) = (struct file_id){ info->st_dev, info->st_ino };
    return true;
}

/* Calls `each` for every table of descriptors: a thread can have one of its own.  `name`: "fd" or "fdinfo". */
static void each_table(const struct member *member, const char *name, void (*each)(DIR *table, void *owner),
                       void *owner)
{
    autoclosedir DIR *tasks = open_list(member->dir, "task"), *first = open_list(member->dir, name);
    const struct dirent *entry;

    if (first)
        each(first, owner);
    while (tasks && (entry = readdir(tasks))) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        char path[300];

        snprintf(path, sizeof path, "%s/%s", entry->d_name, name);
        if (pid <= 0 || pid == member->pid || same(KCMP_FILES, member->pid, pid))
            continue;

        autoclosedir DIR *table = open_list(dirfd(tasks), path);

        if (table)
            each(table, owner);
    }
}

static void add_unlinked(DIR *table, void *owner)
{
    struct unlinked_walk *walk = owner;
    const struct dirent *entry;
    struct stat info;

    while ((entry = readdir(table)))
        if (*entry->d_name != '.' && fstatat(dirfd(table), entry->d_name, &info, 0) == 0 && is_new(walk, &info))
            *(is_in_memory(dirfd(table), entry->d_name) ? &walk->sum->memory : &walk->sum->disk) +=
                (uint64_t)info.st_blocks * 512;
}

static void look_at_files(const struct member *member, char *buffer, void *owner)
{
    (void)buffer;
    each_table(member, "fd", add_unlinked, owner);
}

void processes_unlinked(pid_t init, struct unlinked *out)
{
    struct unlinked_walk found = { .sum = out };

    *out = (struct unlinked){ 0 };
    walk(init, look_at_files, &found);
    free(found.items);
}

/* --- what no descriptor leads to --- */

/* "start-end rights offset device inode   path (deleted)".  What lies on the device of memfds takes no disk. */
static bool maps_removed(const struct member *member, dev_t memory)
{
    autofree char *line = NULL;
    int fd = openat(member->dir, "maps", O_RDONLY | O_CLOEXEC);
    FILE *lines = fd < 0 ? NULL : fdopen(fd, "r");
    size_t room = 0;
    bool found = false;

    while (lines && !found && getline(&line, &room, lines) > 0) {
        unsigned major, minor;

        found = text_ends(line, " (deleted)\n") &&
                sscanf(line, "%*s %*s %*s %x:%x", &major, &minor) == 2 && /* NOLINT(cert-err34-c) */
                makedev(major, minor) != memory;
    }
    if (lines)
        fclose(lines);
    return found;
}

struct hidden_walk {
    dev_t memory;
    bool found;
};

/* Descriptors that were sent over a socket and that nobody has received yet. */
static void look_for_sent(DIR *table, void *owner)
{
    struct hidden_walk *walk = owner;
    const struct dirent *entry;
    char info[1024];

    while (!walk->found && (entry = readdir(table)))
        walk->found = *entry->d_name != '.' && read_file(dirfd(table), entry->d_name, info, sizeof info) > 0 &&
                      line_value(info, "\nscm_fds:") > 0;
}

static void look_for_hidden(const struct member *member, char *buffer, void *owner)
{
    struct hidden_walk *walk = owner;

    (void)buffer;
    walk->found = walk->found || maps_removed(member, walk->memory);
    each_table(member, "fdinfo", look_for_sent, walk);
}

bool processes_hide_files(pid_t init)
{
    autoclose int memfd = memfd_create("cove-device", MFD_CLOEXEC);
    struct hidden_walk hidden = { 0 };
    struct stat info;

    if (memfd >= 0 && fstat(memfd, &info) == 0)
        hidden.memory = info.st_dev;
    walk(init, look_for_hidden, &hidden);
    return hidden.found;
}

/* --- files that are written without a call --- */

/* "7f00-7f01 rw-s 00000000 08:01 1234   /path".  What lies on device 0:1 never was a file, and what is in /dev
 * is in memory. */
static bool is_shared_file(const char *line)
{
    char rights[5] = "", device[16] = "", path[8] = "";

    if (sscanf(line, "%*s %4s %*s %15s %*s %7s", rights, device, path) < 2)
        return false;
    return rights[3] == 's' && strcmp(device, "00:01") != 0 && strncmp(path, "/dev/", 5) != 0;
}

/* What is not writable now can be made so again, if the file was opened for writing; and pages that were
 * written to before are then written to without a fault, so that no time changes.  "VmFlags: rd sh mr mw me
 * ms". */
static bool may_become_writable(const struct member *member)
{
    autofree char *line = NULL;
    int fd = openat(member->dir, "smaps", O_RDONLY | O_CLOEXEC);
    FILE *lines = fd < 0 ? NULL : fdopen(fd, "r");
    bool shared = false, found = !lines, told = false;
    size_t room = 0;

    while (lines && !found && getline(&line, &room, lines) > 0) {
        bool flags = strncmp(line, "VmFlags:", 8) == 0;

        told = told || flags;
        if (flags)
            found = shared && strstr(line, " mw");
        else if (strchr("0123456789abcdef", *line))
            shared = is_shared_file(line);
    }
    if (lines)
        fclose(lines);
    return found || !told;
}

static void look_at_maps(const struct member *member, char *buffer, void *owner)
{
    bool *silent = owner, shared = false;
    ssize_t got = *silent ? 0 : read_file(member->dir, "maps", buffer, LISTED_MAX);

    if (got == LISTED_MAX - 1 || (got < 0 && errno != ENOENT && errno != ESRCH))
        *silent = true;
    for (const char *line = buffer; got > 0 && !*silent && !shared && *line; line += *line == '\n') {
        shared = is_shared_file(line);
        line += strcspn(line, "\n");
    }
    if (shared)
        *silent = may_become_writable(member);
}

bool processes_map_files(pid_t init)
{
    bool silent = false;

    walk(init, look_at_maps, &silent);
    return silent;
}

/* --- whether they have stopped --- */

/* The parent of a vfork() cannot be stopped before its child runs another program. */
static bool is_forking(int tasks, const char *thread)
{
    char name[300], call[64];

    snprintf(name, sizeof name, "%s/syscall", thread);
    if (read_file(tasks, name, call, sizeof call) <= 0 || *call < '0' || *call > '9')
        return false;

    long number = strtol(call, NULL, 10);

    return number == SYS_vfork || number == SYS_clone || number == SYS_clone3;
}

static bool is_still(int tasks, const char *thread)
{
    char name[300], line[512];

    snprintf(name, sizeof name, "%s/stat", thread);
    if (read_file(tasks, name, line, sizeof line) <= 0)
        return true; /* it is gone */

    const char *end = strrchr(line, ')'); /* the name may hold anything */
    int state = end && end[1] == ' ' ? end[2] : 'R';

    return strchr("TtZX", state) || (state == 'D' && is_forking(tasks, thread));
}

static void look_at_threads(const struct member *member, char *buffer, void *owner)
{
    bool *still = owner;
    autoclosedir DIR *dir = !*still || !member->parent ? NULL : open_list(member->dir, "task");
    const struct dirent *entry;

    (void)buffer;
    while (dir && *still && (entry = readdir(dir)))
        *still = *entry->d_name == '.' || is_still(dirfd(dir), entry->d_name);
}

bool processes_are_still(pid_t init)
{
    bool still = true;

    walk(init, look_at_threads, &still);
    return still;
}
