#include "files_session.h"

#include "base/error.h"
#include "base/memory.h"
#include "keeper/files.h"
#include "tests/support/unit.h"
#include "tests/support/unit_scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOBODY = 54321 };

const char *session_program;
struct error session_error;

struct stat session_look(int dir, const char *name)
{
    struct stat status;

    if (fstatat(dir, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        fail_msg("%s: %s", name, strerror(errno));
    return status;
}

bool session_has(int dir, const char *name)
{
    return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static struct files *open_session(int pipes[4], struct error *err)
{
    close(pipes[0]);
    close(pipes[3]);
    return files_open(pipes[1], pipes[2], err);
}

static void make_pipes(int pipes[4])
{
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    assert_int_equal(pipe2(pipes + 2, O_CLOEXEC), 0);
}

static _Noreturn void become_program(const int pipes[4], int dir)
{
    int program = open(session_program, O_PATH | O_CLOEXEC);

    if (fchdir(dir) == 0 && dup2(pipes[0], 0) == 0 && dup2(pipes[3], 1) == 1 &&
        (geteuid() != 0 || (setgroups(0, NULL) == 0 && setgid(NOBODY) == 0 && setuid(NOBODY) == 0)))
        fexecve(program, (char *[]){ (char *)(uintptr_t) "cove-files", NULL }, (char *[]){ NULL });
    _exit(127);
}

int session_setup(void **state)
{
    struct session *session = memory_zero(sizeof *session);
    struct error err = { 0 };
    void *scratch = NULL;
    int pipes[4];

    signal(SIGPIPE, SIG_IGN);
    if (unit_scratch_setup(&scratch) < 0)
        return -1;
    session->scratch = scratch;
    assert_int_equal(fchmod(session->scratch->dir, 0711), 0);
    unit_scratch_dir(session->scratch, "in", 0755);
    unit_scratch_dir(session->scratch, "out", 0700);
    session->in = openat(session->scratch->dir, "in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    session->out = openat(session->scratch->dir, "out", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (geteuid() == 0)
        assert_int_equal(fchown(session->in, NOBODY, NOBODY), 0);
    make_pipes(pipes);
    session->pid = fork();
    if (session->pid == 0)
        become_program(pipes, session->in);
    session->files = open_session(pipes, &err);
    files_be_patient(session->files, 600000, NULL, NULL);
    *state = session;
    return session->files ? 0 : -1;
}

int session_teardown(void **state)
{
    struct session *session = *state;
    void *scratch = session->scratch;
    int status = -1;

    files_close(session->files);
    waitpid(session->pid, &status, 0);
    close(session->in);
    close(session->out);
    unit_scratch_teardown(&scratch);
    free(session);
    return WIFEXITED(status) ? 0 : -1; /* it never crashes */
}

struct files *session_with_liar(void (*liar)(int in, int out, const void *what), const void *what,
                                pid_t *out_pid)
{
    struct error err = { 0 };
    int pipes[4];

    make_pipes(pipes);
    *out_pid = fork();
    if (*out_pid == 0) {
        close(pipes[1]);
        close(pipes[2]);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        signal(SIGPIPE, SIG_DFL);
        liar(pipes[0], pipes[3], what);
        _exit(0);
    }

    struct files *files = open_session(pipes, &err);

    files_be_patient(files, 5000, NULL, NULL);
    return files;
}
