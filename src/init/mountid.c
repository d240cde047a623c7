#include "init/init.h"

#include <errno.h>
#include <linux/stat.h> /* which libc's own sys/stat.h could not stand beside */
#include <sys/syscall.h>
#include <unistd.h>

enum { HERE = -100 }; /* AT_FDCWD */

uint64_t mount_id(const char *path)
{
    struct statx status;

    if (syscall(SYS_statx, HERE, path, 0, STATX_MNT_ID, &status) < 0)
        return 0;
    errno = ENOSYS;
    return status.stx_mask & STATX_MNT_ID ? status.stx_mnt_id : 0;
}
