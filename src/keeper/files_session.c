#include "keeper/files_session.h"

#include "base/error.h"
#include "base/own.h"
#include "init/wire.h"
#include "inside/files_program.h"
#include "keeper/control.h"
#include "keeper/words.h"
#include "sys/sys.h"

#include <fcntl.h>
#include <poll.h>

int files_session_program(struct error *err)
{
    int fd = sys_sealed_memfd("cove-files", files_program, files_program_size);

    return fd < 0 ? error_sys(err, "make a memfd for the program for files") : fd;
}

static int ask(int keeper, const char *const *step, struct error *err)
{
    static const char *const argv[] = { "cove-files", NULL };
    struct control request = CONTROL(CONTROL_EXEC);
    uint32_t counts[2];
    autoclose int words = words_write("", step ? step : argv, NULL, counts, err);

    if (words < 0)
        return -1;
    request.flags = CONTROL_FILES | (step ? CONTROL_STEP : 0U);
    request.arguments = counts[0];
    request.variables = counts[1];
    return control_send(keeper, &request, &words, 1) < 0 ? error_sys(err, "ask for the program for files") : 0;
}

/* Its standard error is of no use to anybody. */
static int hear(int keeper, int *out_to, int *out_from, struct error *err)
{
    int fds[PROTOCOL_FDS_MAX] = { -1, -1, -1, -1, -1, -1 };
    struct control answer;
    size_t count = 0;
    int got = control_receive(keeper, &answer, fds, &count, err);
    bool good = got == WIRE_MESSAGE && answer.kind == CONTROL_STARTED && count == 3;

    if (good) {
        *out_to = steal_fd(&fds[0]);
        *out_from = steal_fd(&fds[1]);
        (void)fcntl(*out_to, F_SETFL, O_WRONLY); /* the keeper's end does not block */
    }
    for (size_t i = 0; i < count; i++)
        own_close(&fds[i]);
    if (good)
        return 0;
    if (got == WIRE_MESSAGE && answer.kind == CONTROL_FAILED)
        *err = answer.error;
    else if (got >= 0)
        error_set(err, ERROR_SYSTEM, "the keeper of the sandbox is gone");
    return -1;
}

/* Who traces the program inside could keep it from its end: that is not worth more than a moment. */
void files_session_end(int keeper)
{
    enum { PATIENCE_MS = 10000 };
    struct pollfd said = { .fd = keeper, .events = POLLIN };
    int fds[PROTOCOL_FDS_MAX];
    struct control message = CONTROL(0);
    struct error ignored;
    size_t count = 0;

    if (poll(&said, 1, PATIENCE_MS) <= 0 || control_receive(keeper, &message, fds, &count, &ignored) < 0)
        return;
    for (size_t i = 0; i < count; i++)
        own_close(&fds[i]);
}

int files_session_start(int keeper, const char *const *step, int *out_to, int *out_from, struct error *err)
{
    return ask(keeper, step, err) < 0 ? -1 : hear(keeper, out_to, out_from, err);
}
