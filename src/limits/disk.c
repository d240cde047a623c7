#include "limits/disk.h"

#include "base/own.h"
#include "base/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

/* Names from inside: nobody makes us go deeper than our stack of descriptors allows. */
enum { DEPTH_MAX = 512 };

/* Nor stay longer than some tenths of a second, unless so many files are allowed: the keeper has more to do. */
enum { FILES_MAX = 200000 };

struct walk {
    uint64_t most_bytes, most_files;
    struct disk *sum;
};

static bool is_too_much(const struct walk *walk)
{
    return walk->sum->files > (walk->most_files > FILES_MAX ? walk->most_files : FILES_MAX);
}

static bool is_over(const struct walk *walk)
{
    return (walk->most_bytes && walk->sum->bytes > walk->most_bytes) ||
           (walk->most_files && walk->sum->files > walk->most_files) || is_too_much(walk);
}

static void walk_dir(struct walk *walk, int parent, const char *name, unsigned depth);

static void look_at(struct walk *walk, int dir, const char *name, unsigned depth)
{
    struct stat info;

    if (fstatat(dir, name, &info, AT_SYMLINK_NOFOLLOW) < 0)
        return; /* it is gone */
    walk->sum->files++;
    walk->sum->bytes += (uint64_t)info.st_blocks * 512 /
                        (S_ISDIR(info.st_mode) || info.st_nlink < 2 ? 1U : (uint64_t)info.st_nlink);
    if (S_ISDIR(info.st_mode))
        walk_dir(walk, dir, name, depth + 1);
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static void walk_dir(struct walk *walk, int parent, const char *name, unsigned depth)
{
    int fd = depth < DEPTH_MAX ? openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    if (depth >= DEPTH_MAX)
        errno = ELOOP;
    if (!dir) {
        walk->sum->whole &= errno == ENOENT || errno == ENOTDIR;
        return;
    }
    while (!is_over(walk) && (entry = readdir(dir)))
        if (!is_dots(entry->d_name))
            look_at(walk, fd, entry->d_name, depth);
    closedir(dir);
}

void disk_walk(int dir, uint64_t most_bytes, uint64_t most_files, struct disk *out)
{
    struct walk walk = { most_bytes, most_files, out };
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = fd < 0 ? NULL : fdopendir(fd); /* which has it from now on */
    const struct dirent *entry;

    *out = (struct disk){ .whole = list != NULL };
    if (!list)
        return;
    while ((entry = readdir(list)))
        if (entry->d_name[0] == 'u')
            walk_dir(&walk, dirfd(list), entry->d_name, 0);
    closedir(list);
    out->whole &= !is_too_much(&walk);
}

static _Noreturn void walk_for(int answer, int users, int dir, uint64_t most_bytes, uint64_t most_files)
{
    struct disk found;

    if (setns(users, CLONE_NEWUSER) < 0)
        _exit(1);
    disk_walk(dir, most_bytes, most_files, &found);
    _exit(write(answer, &found, sizeof found) == sizeof found ? 0 : 1);
}

void disk_walk_inside(int dir, pid_t init, uint64_t most_bytes, uint64_t most_files, struct disk *out)
{
    autofree char *path = text_format("/proc/%d/ns/user", init);
    autoclose int users = open(path, O_RDONLY | O_CLOEXEC);
    int ends[2] = { -1, -1 };
    struct disk found;
    pid_t child = -1;

    if (users >= 0 && pipe2(ends, O_CLOEXEC) == 0)
        child = fork();
    autoclose int hear = ends[0], tell = ends[1];

    if (child == 0)
        walk_for(tell, users, dir, most_bytes, most_files);
    if (child < 0)
        return;
    close(steal_fd(&tell));
    if (read(hear, &found, sizeof found) == sizeof found)
        *out = found;
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        continue;
}

bool disk_look(int dir, struct disk_free *out)
{
    struct statvfs info;

    if (fstatvfs(dir, &info) < 0)
        return false;
    *out = (struct disk_free){ (uint64_t)info.f_bavail * info.f_frsize, info.f_favail };
    return true;
}
