#include "box/lent.h"

#include "base/own.h"
#include "sys/sys.h"
#include "tests/support/unit.h"
#include "tests/support/unit_scratch.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned char program[40000];
static const struct lent ours = { "program", program, sizeof program };

static ino_t inode(int fd)
{
    struct stat status;

    assert_int_equal(fstat(fd, &status), 0);
    return status.st_ino;
}

static void show(const struct unit_scratch *scratch, const char *target)
{
    (void)unlinkat(scratch->dir, "program", 0);
    assert_int_equal(symlinkat(target, scratch->dir, "program"), 0);
}

static void show_fd(const struct unit_scratch *scratch, int fd)
{
    char target[64];

    snprintf(target, sizeof target, "/proc/%d/fd/%d", (int)getpid(), fd);
    show(scratch, target);
}

static void what_is_lent_is_the_same_memory(void **state)
{
    const struct unit_scratch *scratch = *state;

    assert_int_equal(lent_take(scratch->path, &ours), -1);

    int lent = lent_offer(scratch->path, &ours);
    autoclose int taken = lent_take(scratch->path, &ours);

    assert_true(lent >= 0 && taken >= 0);
    assert_int_equal(inode(taken), inode(lent));
    assert_int_equal(lent_offer(scratch->path, &ours), -1); /* somebody does already */
    assert_int_equal(write(taken, "x", 1), -1);
    assert_true(fcntl(taken, F_GETFD) & FD_CLOEXEC);
    close(lent);
    assert_int_equal(lent_take(scratch->path, &ours), -1);

    autoclose int again =
        lent_offer(scratch->path, &ours); /* the link leads nowhere: another takes its place */

    assert_true(again >= 0);
}

static void what_can_be_changed_is_not_taken(void **state)
{
    const struct unit_scratch *scratch = *state;
    autoclose int open = memfd_create("open", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    const int most = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW;

    assert_int_equal(write(open, program, sizeof program), sizeof program);
    show_fd(scratch, open);
    assert_int_equal(lent_take(scratch->path, &ours), -1);
    assert_int_equal(fcntl(open, F_ADD_SEALS, most & ~F_SEAL_SEAL), 0);
    assert_int_equal(lent_take(scratch->path, &ours), -1);
    assert_int_equal(fcntl(open, F_ADD_SEALS, F_SEAL_WRITE), 0);
    assert_int_equal(lent_take(scratch->path, &ours), -1); /* seals may still come */
    assert_int_equal(fcntl(open, F_ADD_SEALS, F_SEAL_SEAL), 0);

    autoclose int taken = lent_take(scratch->path, &ours);

    assert_true(taken >= 0);
}

static void what_is_not_the_program_to_the_byte_is_not_taken(void **state)
{
    const struct unit_scratch *scratch = *state;
    static unsigned char other[sizeof program];

    for (size_t at = 0; at < sizeof other; at += sizeof other - 1) {
        other[at] = 1;
        autoclose int fd = sys_sealed_memfd("other", other, sizeof other);
        other[at] = 0;
        show_fd(scratch, fd);
        assert_int_equal(lent_take(scratch->path, &ours), -1);
    }

    autoclose int shorter = sys_sealed_memfd("other", other, sizeof other - 1);

    show_fd(scratch, shorter);
    assert_int_equal(lent_take(scratch->path, &ours), -1);
}

/* Nobody is waited for, and a file is none that its owner cannot change. */
static void a_link_may_lead_to_anything(void **state)
{
    const struct unit_scratch *scratch = *state;

    unit_scratch_file(scratch, "file", "");
    assert_int_equal(truncate(unit_scratch_path(scratch, "file"), sizeof program), 0);
    assert_int_equal(chmod(unit_scratch_path(scratch, "file"), 0755), 0);
    assert_int_equal(mkfifoat(scratch->dir, "fifo", 0700), 0);
    show(scratch, "file");
    assert_int_equal(lent_take(scratch->path, &ours), -1);
    show(scratch, "fifo");
    assert_int_equal(lent_take(scratch->path, &ours), -1);
    show(scratch, "program");
    assert_int_equal(lent_take(scratch->path, &ours), -1);
    show(scratch, "/dev/null");
    assert_int_equal(lent_take(scratch->path, &ours), -1);
}

/* Lends our very bytes from a process of its own, in another user namespace or not; gives its number of the
 * descriptor. */
static pid_t lend_from(bool stranger, int *fd)
{
    int ends[2];

    assert_int_equal(pipe(ends), 0);

    pid_t pid = fork();

    if (pid == 0) {
        int lent =
            stranger && unshare(CLONE_NEWUSER) < 0 ? -1 : sys_sealed_memfd("program", program, sizeof program);

        (void)!write(ends[1], &lent, sizeof lent);
        pause();
        _exit(0);
    }
    assert_true(pid > 0);
    assert_int_equal(read(ends[0], fd, sizeof *fd), sizeof *fd);
    assert_true(*fd >= 0);
    close(ends[0]);
    close(ends[1]);
    return pid;
}

/* What somebody inside holds could be open for writing, and then nobody can execute it. */
static void of_whoever_is_in_another_user_namespace_nothing_is_taken(void **state)
{
    const struct unit_scratch *scratch = *state;

    for (int stranger = 0; stranger < 2; stranger++) {
        char target[64];
        int fd;
        pid_t pid = lend_from(stranger, &fd);

        snprintf(target, sizeof target, "/proc/%d/fd/%d", (int)pid, fd);
        show(scratch, target);

        autoclose int taken = lent_take(scratch->path, &ours);

        assert_int_equal(taken >= 0, !stranger);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, unit_scratch_setup, unit_scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_lent_is_the_same_memory),
        TEST(what_can_be_changed_is_not_taken),
        TEST(what_is_not_the_program_to_the_byte_is_not_taken),
        TEST(a_link_may_lead_to_anything),
        TEST(of_whoever_is_in_another_user_namespace_nothing_is_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
