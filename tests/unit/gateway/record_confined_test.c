/* What somebody who broke into a gateway can do to a record: add to it, up to its bound. */

#include "base/array.h"
#include "base/own.h"
#include "base/text.h"
#include "gateway/gate.h"
#include "gateway/tape.h"
#include "tests/support/unit.h"
#include "tests/support/unit_scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DONE = 10, REFUSED, UNCONFINED };

static bool add(int fd)
{
    return write(fd, "more\n", 5) == 5;
}

static bool overwrite(int fd)
{
    return lseek(fd, 0, SEEK_SET) == 0 && fcntl(fd, F_SETFL, 0) == 0 && write(fd, "other", 5) == 5;
}

static bool cut(int fd)
{
    return ftruncate(fd, 1) == 0;
}

static bool read_back(int fd)
{
    char byte;

    return read(fd, &byte, 1) == 1;
}

static bool map(int fd)
{
    return mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED;
}

/* Of those that work, `harmless` ones only leave more in the file. */
static const struct {
    const char *name;
    bool (*attempt)(int fd);
    bool harmless;
    bool plainly; /* it works for who is not confined */
} attempts[] = {
    { "add", add, true, true },
    { "overwrite", overwrite, false, true },
    { "cut", cut, false, true },
    { "read back", read_back, false, false }, /* nor without a filter: it was opened for writing */
    { "map", map, false, false },
};

/* By the call itself: before _exit a sanitizer asks for what the filter refuses. */
static void leave(int status)
{
    syscall(SYS_exit_group, status);
}

static void try(bool (*attempt)(int fd), int fd, bool confined)
{
    size_t descriptors;

    the_gate.recorder.fd = fd;
    if (confined && gateway_confine(&descriptors) < 0)
        leave(UNCONFINED);
    leave(attempt(fd) ? DONE : REFUSED);
}

/* DONE, REFUSED, or the signal that ended it. */
static int outcome(bool (*attempt)(int fd), int fd, bool confined)
{
    pid_t child = fork();
    int status;

    if (child == 0)
        try(attempt, fd, confined);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static int open_record(const struct unit_scratch *scratch, const char *name)
{
    int fd = openat(scratch->dir, name, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, "first\n", 6), 6);
    return fd;
}

static off_t size_of(int fd)
{
    struct stat info;

    assert_int_equal(fstat(fd, &info), 0);
    return info.st_size;
}

static void a_record_can_only_be_added_to(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(attempts); i++) {
        int fd = open_record(*state, attempts[i].name);
        int ended = outcome(attempts[i].attempt, fd, true);

        if ((ended == DONE) != attempts[i].harmless || ended == UNCONFINED)
            fail_msg("%s: %d", attempts[i].name, ended);
        assert_int_equal(size_of(fd), attempts[i].harmless ? 11 : 6);
        close(fd);

        autofree char *again = text_format("control %s", attempts[i].name);

        fd = open_record(*state, again);
        assert_int_equal(outcome(attempts[i].attempt, fd, false), attempts[i].plainly ? DONE : REFUSED);
        close(fd);
    }
}

static bool add_much(int fd)
{
    return add(fd) && add(fd);
}

static void a_record_has_a_bound(void **state)
{
    int fd = open_record(*state, "full");

    assert_int_equal(ftruncate(fd, TAPE_BYTES_MAX - 5), 0);
    assert_int_equal(outcome(add_much, fd, true), -SIGXFSZ);
    assert_int_equal(size_of(fd), TAPE_BYTES_MAX);
    assert_int_equal(outcome(add_much, fd, false), DONE);
    close(fd);
}

#define ON_SCRATCH(test) cmocka_unit_test_setup_teardown(test, unit_scratch_setup, unit_scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_SCRATCH(a_record_can_only_be_added_to),
        ON_SCRATCH(a_record_has_a_bound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
