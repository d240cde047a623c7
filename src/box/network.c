#include "box/network.h"

#include "base/error.h"

#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
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

int network_make(struct error *err)
{
    if (unshare(CLONE_NEWNET) < 0)
        return error_sys(err, "make a network namespace");
    return bring_up_loopback() < 0 ? error_sys(err, "bring up loopback") : 0;
}
