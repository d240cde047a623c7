/* A process apart has exactly the descriptors that it was given, or does not go on. */
#include "keeper/apart.h"

#include "tests/support/unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DID_NOT_GO_ON = 1, WENT_ON_WITHOUT = 6, WENT_ON = 7, GIVEN = 3 };

static int end_of(void (*child)(void))
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        child();
        _exit(99);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void go_apart(void)
{
    int first = open("/dev/null", O_RDONLY | O_CLOEXEC), none = -1, last = open("/", O_PATH | O_CLOEXEC);
    int *fds[GIVEN] = { &first, &none, &last };

    apart("apart", fds, GIVEN);
    if (first != 0 || none != -1 || last != 2 || fcntl(1, F_GETFD) >= 0 || fcntl(GIVEN, F_GETFD) >= 0)
        _exit(WENT_ON_WITHOUT);
    _exit(WENT_ON);
}

static void go_apart_without_room(void)
{
    const struct rlimit few = { 16, 16 };

    (void)setrlimit(RLIMIT_NOFILE, &few);
    go_apart();
}

static void what_was_given_has_the_first_numbers(void **state)
{
    (void)state;
    assert_int_equal(end_of(go_apart), WENT_ON);
}

/* It would take what it lacks for what was never given. */
static void who_cannot_have_one_does_not_go_on(void **state)
{
    (void)state;
    assert_int_equal(end_of(go_apart_without_room), DID_NOT_GO_ON);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_given_has_the_first_numbers),
        cmocka_unit_test(who_cannot_have_one_does_not_go_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
