/* What a service manager, or who sits at its socket, says to a call. */

#include "base/error.h"
#include "base/own.h"
#include "fuzz.h"
#include "limits/manager.h"

#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int ends[2];
    struct error err = { 0 };

    /* More than a socket takes at once would wait for a reader. */
    if (size > 32768 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return 0;
    check(write(ends[1], data, size) == (ssize_t)size);
    close(ends[1]);
    int answered = manager_answer(ends[0], &err);

    close(ends[0]);
    check(answered == 0 ? size >= 16 : err.kind != ERROR_NONE && strlen(err.text) < sizeof err.text);
    return 0;
}
