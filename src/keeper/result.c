#include "keeper/result.h"

#include "base/array.h"

#include <stddef.h>
#include <sys/wait.h>

const char *result_reason_name(enum result_reason reason)
{
    static const char *const names[] = {
        [RESULT_EXITED] = "exited",           [RESULT_SIGNALED] = "signaled",
        [RESULT_TIMED_OUT] = "timed-out",     [RESULT_INTERRUPTED] = "interrupted",
        [RESULT_NOT_STARTED] = "not-started", [RESULT_OUTPUT_LOST] = "output-lost",
        [RESULT_FAILED] = "failed",           [RESULT_LIMIT] = "limit",
    };

    return (size_t)reason < ARRAY_LEN(names) ? names[reason] : "unknown";
}

void result_from_status(struct result *result, int status)
{
    if (WIFSIGNALED(status)) {
        result->reason = RESULT_SIGNALED;
        result->signal = WTERMSIG(status);
        result->core = WCOREDUMP(status);
        result->exit_code = EXIT_SIGNALED + result->signal;
        return;
    }
    result->reason = RESULT_EXITED;
    result->exit_code = WEXITSTATUS(status);
}
