#include "keeper/control.h"

#include "base/own.h"
#include "base/text.h"
#include "init/wire.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

enum { BACKLOG = 128 };

/* What lies behind a text is whatever the memory held before: a stranger who is refused would learn addresses,
 * and the canary, of a keeper. */
static void blank_rest(char *text, size_t size)
{
    size_t len = strnlen(text, size);

    memset(text + len, 0, size - len);
}

int control_send(int fd, const struct control *message, const int *fds, size_t count)
{
    struct control clean = *message;

    blank_rest(clean.user, sizeof clean.user);
    blank_rest(clean.error.text, sizeof clean.error.text);
    return wire_put(fd, &clean, sizeof clean, fds, count);
}

static void close_all(const int *fds, size_t *count)
{
    for (size_t i = 0; i < *count; i++)
        close(fds[i]);
    *count = 0;
}

int control_receive(int fd, struct control *message, int *fds, size_t *count, struct error *err)
{
    int got = wire_take(fd, message, sizeof *message, fds, count, err);

    if (got != WIRE_MESSAGE)
        return got < 0 ? error_hint(err, "the other end may be another version of Cove") : got;
    message->user[sizeof message->user - 1] = '\0';
    message->layer[sizeof message->layer - 1] = '\0';
    message->error.text[sizeof message->error.text - 1] = '\0';
    if (message->version == CONTROL_VERSION)
        return got;
    close_all(fds, count);
    return error_set(err, ERROR_UNSUPPORTED,
                     "the other end is another version of Cove: it speaks protocol %u, not %d",
                     message->version, CONTROL_VERSION);
}

/* By way of a descriptor: a path of any length, and none that is resolved twice.  A name in it is for bind().
 */
static void name_address(int fd, const char *name, struct sockaddr_un *out)
{
    *out = (struct sockaddr_un){ .sun_family = AF_UNIX };
    snprintf(out->sun_path, sizeof out->sun_path, "%s%s%s", sys_fd_path(fd).text, name ? "/" : "",
             name ? name : "");
}

int control_listen(int dir, struct error *err)
{
    autoclose int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_un address;

    name_address(dir, CONTROL_SOCKET, &address);
    if (unlinkat(dir, CONTROL_SOCKET, 0) < 0 && errno != ENOENT)
        return error_sys(err, "remove the old control socket");
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof address) < 0 ||
        fchmodat(dir, CONTROL_SOCKET, 0600, 0) < 0 || listen(fd, BACKLOG) < 0)
        return error_sys(err, "make the control socket");
    return steal_fd(&fd);
}

int control_connect(int dir, struct error *err)
{
    autoclose int place = openat(dir, CONTROL_SOCKET, O_PATH | O_NOFOLLOW | O_CLOEXEC),
                  fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    struct sockaddr_un address;

    if (fd < 0)
        return error_sys(err, "make a socket");
    name_address(place, NULL, &address);
    if (place >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
        return steal_fd(&fd);
    if (errno == ENOENT || errno == ECONNREFUSED)
        return error_set(err, ERROR_MISSING, "nobody keeps this sandbox running");
    return error_sys(err, "connect to the sandbox's keeper");
}

/* A handle on who connected, where the kernel gives one: after it, the number cannot be somebody else's as long
 * as they live.  -1: they are gone; -2: the kernel has no such thing (before Linux 6.5). */
static int peer_handle(int fd)
{
    socklen_t size = sizeof fd;
    int handle;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &handle, &size) == 0)
        return handle;
    return errno == ENOPROTOOPT ? -2 : -1;
}

static bool shares_namespace(pid_t pid)
{
    autofree char *path = text_format("/proc/%d/ns/user", pid);
    struct stat its, ours;

    return stat(path, &its) == 0 && stat("/proc/self/ns/user", &ours) == 0 && its.st_ino == ours.st_ino &&
           its.st_dev == ours.st_dev;
}

int control_check_peer(int fd, struct error *err)
{
    autoclose int handle = peer_handle(fd);
    struct ucred peer;
    socklen_t size = sizeof peer;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
        return error_sys(err, "ask who is at the other end");
    if (peer.uid != geteuid() || !shares_namespace(peer.pid) || handle == -1 ||
        (handle >= 0 && sys_pidfd_kill(handle, 0) < 0))
        return error_set(err, ERROR_REFUSED,
                         "only the owner of a sandbox, outside of any sandbox, may ask its keeper");
    return 0;
}
