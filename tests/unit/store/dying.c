#include "tests/unit/store/dying.h"

#include "tests/support/unit.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static _Noreturn void be_child(int (*work)(void *argument), void *argument)
{
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    raise(SIGSTOP);
    _exit(work(argument) == 0 ? 0 : 1);
}

static int await(pid_t child)
{
    int status;

    while (waitpid(child, &status, __WALL) < 0)
        assert_int_equal(errno, EINTR);
    return status;
}

/* The kernel stops a traced child before and after each call.  One that is killed before does not carry it out.
 */
bool dying_at(unsigned call, int (*work)(void *argument), void *argument)
{
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0)
        be_child(work, argument);
    assert_true(WIFSTOPPED(await(child)));
    ptrace(PTRACE_SETOPTIONS, child, NULL, (void *)(uintptr_t)(PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD));
    ptrace(PTRACE_SYSCALL, child, NULL, NULL); /* out of raise() */
    await(child);
    for (unsigned stops = 0;; stops++) {
        ptrace(PTRACE_SYSCALL, child, NULL, NULL);

        int status = await(child);

        if (WIFEXITED(status)) {
            assert_int_equal(WEXITSTATUS(status), 0);
            return false;
        }
        assert_true(WIFSTOPPED(status));
        if (stops == 2 * call) {
            kill(child, SIGKILL);
            assert_true(WIFSIGNALED(await(child)));
            return true;
        }
    }
}
