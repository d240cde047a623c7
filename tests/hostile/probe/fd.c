/* Descriptors, environment, terminal. */

#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int descriptors(int argc, char **argv)
{
    (void)argc, (void)argv;
    for (int fd = 0; fd < 65536; fd++) {
        struct stat status;

        if (fstat(fd, &status) == 0)
            say("fd", "%d %o %llx:%llu", fd, status.st_mode & S_IFMT, (unsigned long long)status.st_dev,
                (unsigned long long)status.st_ino);
    }
    return 0;
}

static int reopen(int argc, char **argv)
{
    char path[64];

    (void)argc, (void)argv;
    for (int fd = 0; fd < 3; fd++) {
        struct stat status = { 0 };

        fstat(fd, &status);
        dprintf(2, "SAY type %d %o\n", fd, status.st_mode & S_IFMT);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        dprintf(2, "CHK fchdir:%d %d\n", fd, fchdir(fd) < 0 ? errno : 0);
        dprintf(2, "CHK openat:%d %d\n", fd, openat(fd, "..", O_RDONLY) < 0 ? errno : 0);
        dprintf(2, "CHK ftruncate:%d %d\n", fd, ftruncate(fd, 0) < 0 ? errno : 0);
        dprintf(2, "CHK lseek:%d %d\n", fd, lseek(fd, 0, SEEK_SET) < 0 ? errno : 0);
        dprintf(2, "CHK map:%d %d\n", fd,
                mmap(NULL, 1, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED ? errno : 0);
        int again = open(path, O_RDWR | O_NONBLOCK);

        dprintf(2, "CHK reopen:%d %d\n", fd, again < 0 ? errno : 0);
        if (again >= 0 && ftruncate(again, 0) == 0)
            dprintf(2, "SAY truncated %d\n", fd);
    }
    return 0;
}

static int environment(int argc, char **argv)
{
    extern char **environ;

    (void)argc, (void)argv;
    for (char **at = environ; *at; at++)
        say("env", "%s", *at);
    return 0;
}

static int terminal(int argc, char **argv)
{
    struct stat status = { 0 };
    int tty = open("/dev/tty", O_RDWR | O_NOCTTY);

    (void)argc, (void)argv;
    chk("dev-tty", tty);

    const char *name = ttyname(0);

    say("ttyname", "%s", name ? name : "none");
    fstat(0, &status);
    say("stdin", "%o %llx:%llu", status.st_mode & S_IFMT, (unsigned long long)status.st_dev,
        (unsigned long long)status.st_ino);
    say("session", "%d own %d", getsid(0), getsid(0) == getpid());
    if (tty >= 0)
        for (const char *at = "attacker\n"; *at; at++)
            chk("sti", ioctl(tty, 0x5412UL, at));
    chk("linux", ioctl(tty, 0x541cUL, "\1"));
    return 0;
}

static int print(int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        for (char *at = argv[i]; *at; at++) {
            char byte = *at;

            if (at[0] == '\\' && at[1] == 'x') {
                byte = (char)strtol((char[]){ at[2], at[3], '\0' }, NULL, 16);
                at += 3;
            }
            (void)!write(1, &byte, 1);
        }
    return 0;
}

static int flood(int argc, char **argv)
{
    long mega = argc > 0 ? atol(argv[0]) : 1, tiny = argc > 1 ? atol(argv[1]) : 0;
    static char block[1 << 20];

    memset(block, 'x', sizeof block);
    for (long i = 0; i < mega; i++)
        for (size_t done = 0; done < sizeof block;) {
            ssize_t wrote = write(1, block + done, sizeof block - done);

            if (wrote <= 0)
                return 1;
            done += (size_t)wrote;
        }
    for (long i = 0; i < tiny; i++)
        if (write(1, "y", 1) != 1)
            return 1;
    return 0;
}

const struct attack fd_attacks[] = {
    { "descriptors", descriptors },
    { "reopen", reopen },
    { "environment", environment },
    { "terminal", terminal },
    { "print", print },
    { "flood", flood },
    { NULL, NULL },
};
