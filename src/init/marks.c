/* The place where programs inside mark steps of their own (init/mark.h): a directory in /run, made before the
 * first command runs, with the program that does it and the socket that it talks to.  The socket goes to the
 * keeper; PID 1 reads nothing from it. */

#include "init/init.h"

#include "init/mark.h"
#include "init/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 16 };

static int lay_program(int program)
{
    int fd = open(MARK_PROGRAM, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0755);
    struct stat status;
    off_t at = 0;

    if (fd < 0)
        return -1;
    if (fstat(program, &status) == 0)
        while (at < status.st_size && sendfile(fd, program, &at, (size_t)(status.st_size - at)) > 0)
            continue;

    int whole = fchmod(fd, 0755) == 0 && at == status.st_size && at > 0 ? 0 : -1;

    close(fd);
    return whole;
}

/* Whoever inside has another user may come as well. */
static int listen_inside(void)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = MARK_SOCKET };
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd >= 0 && bind(fd, (const struct sockaddr *)&address, sizeof address) == 0 &&
        chmod(MARK_SOCKET, 0666) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* It is there already where refusals of the network are told in it. */
static int make_directory(void)
{
    int fd, result;

    if (mkdir(MARK_DIRECTORY, 0755) < 0 && errno != EEXIST)
        return -1;
    fd = open(MARK_DIRECTORY, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -1;
    result = fchmod(fd, 0755);
    close(fd);
    return result;
}

void marks_open(const int *fds, size_t count)
{
    struct message answer = { .kind = MESSAGE_MARKS };
    int fd = -1;

    errno = EINVAL;
    if (count == 1 && make_directory() == 0 && lay_program(fds[0]) == 0 && symlink("step", MARK_ALIAS) == 0)
        fd = listen_inside();
    answer.status = fd < 0 ? errno : 0;
    wire_send(PROTOCOL_INIT_FD, &answer, &fd, fd < 0 ? 0 : 1);
    if (fd >= 0)
        close(fd);
}
