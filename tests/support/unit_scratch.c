#include "tests/support/unit_scratch.h"

#include "base/memory.h"
#include "base/own.h"
#include "base/text.h"
#include "tests/support/unit.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int unit_scratch_setup(void **state)
{
    struct unit_scratch *scratch = memory_zero(sizeof *scratch);
    const char *place = getenv("TMPDIR");
    autofree char *name = text_format("%s/cove-unit-XXXXXX", place ? place : "/tmp");

    if (!mkdtemp(name))
        return -1;
    scratch->path = realpath(name, NULL);
    scratch->dir = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *state = scratch;
    return scratch->path && scratch->dir >= 0 ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *stat, int type, struct FTW *at)
{
    (void)stat;
    (void)type;
    (void)at;
    return remove(path);
}

int unit_scratch_teardown(void **state)
{
    struct unit_scratch *scratch = *state;

    close(scratch->dir);
    nftw(scratch->path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(scratch->path);
    free(scratch);
    return 0;
}

const char *unit_scratch_path(const struct unit_scratch *scratch, const char *name)
{
    static char paths[4][512];
    static unsigned next;
    char *path = paths[next++ % 4];

    snprintf(path, sizeof paths[0], "%s/%s", scratch->path, name);
    return path;
}

const char *unit_scratch_file(const struct unit_scratch *scratch, const char *name, const char *content)
{
    int fd = openat(scratch->dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, content, strlen(content)), strlen(content));
    close(fd);
    return unit_scratch_path(scratch, name);
}

void unit_scratch_dir(const struct unit_scratch *scratch, const char *name, mode_t mode)
{
    assert_int_equal(mkdirat(scratch->dir, name, 0700), 0);
    assert_int_equal(fchmodat(scratch->dir, name, mode, 0), 0);
}
