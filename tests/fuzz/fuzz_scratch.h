#pragma once

/* A directory for fuzzers that make files: what they make must stay in it, below `top`, and a file beside it
 * must stay as it is. */

#include "tests/fuzz/fuzz.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static char fuzz_dir[64];
static int fuzz_beside = -1;

static int fuzz_remove_one(const char *path, const struct stat *status, int type, struct FTW *at)
{
    (void)status, (void)type, (void)at;
    (void)chmod(path, 0700);
    (void)remove(path);
    return 0;
}

static inline void fuzz_scratch_remove(void)
{
    nftw(fuzz_dir, fuzz_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* An empty directory. */
static inline int fuzz_scratch_top(void)
{
    if (fuzz_beside < 0) {
        snprintf(fuzz_dir, sizeof fuzz_dir, "/tmp/cove-fuzz-XXXXXX");
        check(mkdtemp(fuzz_dir) != NULL);
        atexit(fuzz_scratch_remove);
        fuzz_beside = open(fuzz_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        close(openat(fuzz_beside, "canary", O_WRONLY | O_CREAT | O_CLOEXEC, 0400));
    }
    check(mkdirat(fuzz_beside, "top", 0700) == 0);
    return openat(fuzz_beside, "top", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Looks that nothing else came, and removes it. */
static inline void fuzz_scratch_done(int top)
{
    char path[80];
    struct stat status;

    close(top);
    check(fstatat(fuzz_beside, ".", &status, 0) == 0 && status.st_nlink == 3); /* one directory in it */
    check(fstatat(fuzz_beside, "canary", &status, 0) == 0 && status.st_size == 0 && status.st_nlink == 1 &&
          (status.st_mode & 07777) == 0400);
    snprintf(path, sizeof path, "%s/top", fuzz_dir);
    nftw(path, fuzz_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
