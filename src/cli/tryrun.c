#include "cli/tryrun.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/say.h"
#include "doctor/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* A start takes milliseconds, the first one of a user some hundred. */
enum { PATIENCE_MS = 30000, PAUSE_MS = 5 };

static _Noreturn void be_run(const struct patient *patient, const char *workspace, int words)
{
    char *argv[] = { (char[]){ "run" },      (char[]){ "--rm" },        (char[]){ "--quiet" },
                     (char[]){ "--no-tty" }, (char[]){ "--directory" }, text_copy(workspace),
                     (char[]){ "--" },       (char[]){ "true" },        NULL };
    autofree char *state = text_format("%s/state", patient->scratch_path);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct error err = { 0 };

    if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(words, 2) < 0 ||
        setenv("COVE_HOME", state, 1) < 0)
        _exit(EXIT_FAILURE);

    int code = command_run(command_find("run"), ARRAY_LEN(argv) - 1, argv, &err);

    _exit(code < 0 ? say_error(&err) : code);
}

/* What it says, until it ends or says too much. */
static int hear(int fd, char *said, size_t size)
{
    struct pollfd polled = { .fd = fd, .events = POLLIN };
    uint64_t end = clock_us() + PATIENCE_MS * 1000ULL;
    size_t len = 0;

    for (ssize_t got = 1; got != 0 && len + 1 < size; len += got > 0 ? (size_t)got : 0) {
        uint64_t now = clock_us();

        if (now >= end || poll(&polled, 1, (int)((end - now) / 1000) + 1) == 0)
            return -1;
        got = read(fd, said + len, size - 1 - len);
        if (got < 0 && errno != EINTR)
            break;
    }
    said[len] = '\0';
    return 0;
}

/* The guard is ours when its parent has ended.  What it does not manage in time, the doctor removes. */
static void wait_for_guard(void)
{
    for (int waited = 0; waited < PATIENCE_MS && waitpid(-1, NULL, WNOHANG) >= 0; waited += PAUSE_MS)
        (void)poll(NULL, 0, PAUSE_MS);
}

static int judge(int status, char *said, struct error *err)
{
    static const char own[] = "cove: ";
    char *end = strchr(said, '\n');

    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    if (end)
        *end = '\0';
    if (WIFSIGNALED(status))
        return error_set(err, ERROR_UNSUPPORTED, "it was killed by signal %d", WTERMSIG(status));
    if (!*said)
        return error_set(err, ERROR_UNSUPPORTED, "`true` did not run: exit code %d", WEXITSTATUS(status));
    return error_set(err, ERROR_UNSUPPORTED, "%s", said + (text_starts(said, own) ? strlen(own) : 0));
}

static int run_in(const struct patient *patient, const char *workspace, struct error *err)
{
    char said[sizeof err->text] = "";
    int ends[2], status = 0;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_sys(err, "make a pipe");
    autoclose int words = ends[0], its = ends[1];
    pid_t pid = fork();

    if (pid < 0)
        return error_sys(err, "fork");
    if (pid == 0)
        be_run(patient, workspace, its);
    close(steal_fd(&its));

    bool late = hear(words, said, sizeof said) < 0;

    if (late)
        kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    wait_for_guard();
    return late ? error_set(err, ERROR_UNSUPPORTED, "it did not end within %d seconds", PATIENCE_MS / 1000)
                : judge(status, said, err);
}

/* Not beside the state: for root that is below a system directory, which is no workspace. */
static char *make_workspace(const struct host *host)
{
    const char *const places[] = { strcmp(host->home, "/") == 0 ? "/tmp" : host->home, "/var/tmp", "/tmp" };

    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        autofree char *path = text_format("%s/.cove-doctor-XXXXXX", places[i]);

        if (mkdtemp(path))
            return steal_ptr(&path);
    }
    return NULL;
}

int tryrun(const struct patient *patient, struct error *err)
{
    autofree char *workspace = make_workspace(&patient->host);

    if (!workspace)
        return error_sys(err, "make a directory to work in, in your home or /tmp");
    prctl(PR_SET_CHILD_SUBREAPER, 1);

    int result = run_in(patient, workspace, err);

    (void)rmdir(workspace);
    return result;
}
