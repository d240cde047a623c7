#include "box/network.h"

#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int bring_up_loopback(void)
{
    struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    int result = ioctl(fd, SIOCSIFFLAGS, &request);

    close(fd);
    return result;
}

/* Runs in a process that shares memory and descriptors with its parent: what it opens is the
 * parent's too.  It must not touch anything but *network. */
static int make_namespace(void *argument)
{
    struct network *network = argument;

    if (unshare(CLONE_NEWNET) < 0 || bring_up_loopback() < 0 ||
        (network->fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC)) < 0)
        network->failed = errno;
    return 0;
}

/* Left to itself the scheduler often queues the new task behind us, though another processor is
 * idle by the time that it could run. */
static void run_elsewhere(pid_t pid)
{
    cpu_set_t allowed;
    int here = sched_getcpu();

    if (here < 0 || here >= CPU_SETSIZE || sched_getaffinity(0, sizeof allowed, &allowed) < 0)
        return;
    CPU_CLR((unsigned)here, &allowed);
    if (CPU_COUNT(&allowed) > 0)
        (void)sched_setaffinity(pid, sizeof allowed, &allowed);
}

int network_begin(struct network *network, bool elsewhere, struct error *err)
{
    static _Alignas(16) char stack[64 << 10];

    *network = NETWORK_NONE;
    network->pid = clone(make_namespace, stack + sizeof stack, CLONE_VM | CLONE_FILES | SIGCHLD, network);
    if (network->pid < 0)
        return error_sys(err, "start the maker of the network namespace");
    if (elsewhere)
        run_elsewhere(network->pid);
    return 0;
}

int network_enter(struct network *network, struct error *err)
{
    while (waitpid(network->pid, NULL, 0) < 0)
        if (errno != EINTR)
            return error_sys(err, "wait for the network namespace");
    errno = network->failed;
    if (network->failed || network->fd < 0)
        return error_sys(err, "make a network namespace with loopback");
    if (setns(network->fd, CLONE_NEWNET) < 0)
        return error_sys(err, "enter the network namespace");
    close(network->fd);
    return 0;
}
