#include "tests/support/unit_chance.h"

#include "base/array.h"
#include "base/own.h"
#include "base/text.h"
#include "sys/sys.h"
#include "tests/support/unit.h"

#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { SOMEBODY = 54321 };

bool chance_enter_namespaces(bool as_root)
{
    if (!as_root && geteuid() == 0 &&
        (setresgid(SOMEBODY, SOMEBODY, SOMEBODY) || setresuid(SOMEBODY, SOMEBODY, SOMEBODY)))
        return false;

    autofree char *uids = text_format("0 %u 1", geteuid()), *gids = text_format("0 %u 1", getegid());

    prctl(PR_SET_DUMPABLE, 1); /* who changed ids does not own its own /proc files until it says so */
    if (unshare(CLONE_NEWNS | (as_root ? 0 : CLONE_NEWUSER)) < 0)
        return false;
    if (!as_root && (sys_write_file(AT_FDCWD, "/proc/self/setgroups", "deny") < 0 ||
                     sys_write_file(AT_FDCWD, "/proc/self/uid_map", uids) < 0 ||
                     sys_write_file(AT_FDCWD, "/proc/self/gid_map", gids) < 0))
        return false;
    return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

struct dice chance_dice(unsigned seed)
{
    return (struct dice){ 0x9e3779b97f4a7c15u * seed };
}

unsigned chance_roll(struct dice *dice, unsigned sides)
{
    dice->state ^= dice->state << 13;
    dice->state ^= dice->state >> 7;
    dice->state ^= dice->state << 17;
    return (unsigned)(dice->state >> 33) % sides;
}

static void some_path(struct dice *dice, char path[32])
{
    size_t len = 0;

    for (unsigned depth = 1 + chance_roll(dice, 3); depth--; path[len++] = '/')
        path[len++] = (char)('a' + chance_roll(dice, 4));
    path[len - 1] = '\0';
}

void chance_put(const char *path, const char *content, int flags)
{
    autoclose int fd = open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | flags, 0644);

    if (fd >= 0 && write(fd, content, strlen(content)) < 0)
        fail_msg("write %s", path);
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *at)
{
    (void)status;
    (void)type;
    (void)at;
    return remove(path);
}

static void remove_all(const char *path)
{
    nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void put_by_memory(const char *path, char byte)
{
    autoclose int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    struct stat status;

    if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) || !status.st_size)
        return;

    char *memory = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (memory == MAP_FAILED)
        return;
    memory[0] = byte;
    munmap(memory, (size_t)status.st_size);
}

static void act(struct dice *dice)
{
    static const char *const contents[] = { "", "one", "two", "three", "another" };
    static const mode_t modes[] = { 0644, 0755, 0600, 0500 };
    const char *content = contents[chance_roll(dice, ARRAY_LEN(contents))];
    mode_t mode = modes[chance_roll(dice, ARRAY_LEN(modes))];
    char path[32], other[32];
    int failed = 0;

    some_path(dice, path);
    some_path(dice, other);
    switch (chance_roll(dice, 19)) {
    case 0:
    case 1:
        chance_put(path, content, O_CREAT | O_TRUNC);
        break;
    case 2:
        chance_put(path, content, O_APPEND);
        break;
    case 3:
        chance_put(path, content, O_TRUNC);
        break;
    case 4:
        failed = fchmodat(AT_FDCWD, path, mode, 0);
        break;
    case 5:
        failed = unlink(path);
        break;
    case 6:
        remove_all(path);
        break;
    case 7:
        remove_all(path);
        failed = mkdir(path, mode | 0700);
        break;
    case 8:
    case 9:
        failed = mkdir(path, 0755);
        break;
    case 10:
    case 11:
    case 12:
        failed = rename(path, other);
        break;
    case 13:
        failed = renameat2(AT_FDCWD, path, AT_FDCWD, other, RENAME_EXCHANGE);
        break;
    case 14:
        failed = symlink(content, path);
        break;
    case 15:
        failed = truncate(path, 3 * 4096);
        break;
    case 16:
        put_by_memory(path, *content);
        break;
    case 17:
        failed = setxattr(path, "user.note", content, strlen(content), 0);
        break;
    default:
        failed = link(path, other);
        break;
    }
    (void)failed;
}

void chance_act(struct dice *dice, const char *where, unsigned times)
{
    autoclose int here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);

    assert_int_equal(chdir(where), 0);
    while (times--)
        act(dice);
    assert_int_equal(fchdir(here), 0);
}

static unsigned number(const char *variable, unsigned otherwise)
{
    const char *text = getenv(variable);

    return text ? (unsigned)strtoul(text, NULL, 10) : otherwise;
}

void chance_each_seed(unsigned seeds, void (*check)(unsigned seed))
{
    unsigned first = number("COVE_SEED", 1);

    for (unsigned seed = first, last = first + number("COVE_SEEDS", seeds); seed < last; seed++)
        check(seed);
}
