#pragma once

#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

/* renameat2(2), which musl has no name for.  `new`: fails with EEXIST if `to` is there. */
static inline int rename_at(int from_dir, const char *from, int to_dir, const char *to, bool new)
{
    enum { NOREPLACE = 1 };

    return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, new ? NOREPLACE : 0);
}
