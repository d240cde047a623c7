#include "keeper/program.h"

#include "base/array.h"
#include "base/error.h"
#include "base/own.h"
#include "gateway/gateway.h"
#include "keeper/apart.h"
#include "keeper/gateway_program.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FDS_MAX = 32, VARIABLES_MAX = 8 };

/* What builds for tests are told by variables. */
static const char *const told[] = {
#ifdef COVE_UNSAFE
    "COVE_UNSAFE_WITHOUT=",
#endif
#ifdef COVE_SANITIZED
    "ASAN_OPTIONS=",
    "UBSAN_OPTIONS=",
#endif
    NULL,
};

static void choose_variables(char *out[VARIABLES_MAX])
{
    size_t len = 0;

    for (char **at = environ; at && *at; at++)
        for (size_t i = 0; told[i]; i++)
            if (strncmp(*at, told[i], strlen(told[i])) == 0 && len + 1 < VARIABLES_MAX)
                out[len++] = *at;
}

static _Noreturn void become(const char *const argv[], const int *given, int count)
{
    int program = sys_sealed_memfd("cove-gateway", gateway_program, gateway_program_size);
    char *variables[VARIABLES_MAX] = { NULL };
    int fds[FDS_MAX], *places[FDS_MAX + 1];
    sigset_t none;

    if (program < 0 || count > FDS_MAX)
        _exit(1);
    for (int i = 0; i < count; i++) {
        fds[i] = given[i];
        places[i] = &fds[i];
    }
    places[count] = &program;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    apart(argv[0], places, count + 1);
    (void)fcntl(program, F_SETFD, FD_CLOEXEC);
    choose_variables(variables);
    syscall(SYS_execveat, program, "", argv, variables, AT_EMPTY_PATH);
    _exit(1);
}

static void take_all(int fd, char *out, size_t most)
{
    size_t len = 0;

    for (ssize_t got; len < most && (got = read(fd, out + len, most - len)) != 0; len += (size_t)got)
        if (got < 0 && errno == EINTR)
            got = 0;
        else if (got < 0)
            break;
    out[len] = '\0';
}

int program_ask(const char *const argv[], int in, char *out, size_t size)
{
    int ends[2], status = 0;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    const int fds[] = { in, ends[1], -1 };
    pid_t pid = program_start(argv, fds, ARRAY_LEN(fds));

    close(ends[1]);
    take_all(ends[0], out, size - 1);
    close(ends[0]);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

int program_check_bundle(const char *pem, struct error *err)
{
    static const char *const argv[] = { GATEWAY_CHECK, NULL };
    autoclose int in = sys_sealed_memfd("cove-bundle", pem, strlen(pem));
    char why[sizeof err->text] = "";

    if (in < 0 || lseek(in, 0, SEEK_SET) < 0)
        return error_sys(err, "hand certificates over");
    if (program_ask(argv, in, why, sizeof why) == 0)
        return 0;
    return error_set(err, ERROR_INVALID, "%s", *why ? why : "certificates could not be looked at");
}

pid_t program_start(const char *const argv[], const int *fds, int count)
{
    pid_t pid = fork();

    if (pid == 0)
        become(argv, fds, count);
    return pid;
}
