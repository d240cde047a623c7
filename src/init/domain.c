/* The second wall: Landlock rules say again, by file hierarchy, what the mounts say already.  A
 * mistake in one does not open the other. */

#include "init/domain.h"

#include "base/error.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Newer than the headers that we build with. */
#ifndef LANDLOCK_ACCESS_FS_REFER
#define LANDLOCK_ACCESS_FS_REFER (1ULL << 13)
#endif
#define ACCESS_TRUNCATE (1ULL << 14)
#define ACCESS_IOCTL_DEV (1ULL << 15)
#define SCOPE_ABSTRACT_SOCKET (1ULL << 0)
#define SCOPE_SIGNAL (1ULL << 1)

struct ruleset {
    uint64_t files, network, scoped;
};

static const uint64_t reading =
    LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;

/* What can be said about a single file; the kernel refuses the rest there. */
static const uint64_t of_files = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE |
                                 LANDLOCK_ACCESS_FS_READ_FILE | ACCESS_TRUNCATE | ACCESS_IOCTL_DEV;

/* Device nodes are never made, not even where writing is allowed. */
static const uint64_t never = LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK;

/* Everything that this version of Landlock can tell apart. */
static uint64_t handled(int abi)
{
    uint64_t all = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;

    if (abi >= 2)
        all |= LANDLOCK_ACCESS_FS_REFER;
    if (abi >= 3)
        all |= ACCESS_TRUNCATE;
    if (abi >= 5)
        all |= ACCESS_IOCTL_DEV;
    return all;
}

static int add_rule(int ruleset, int path, uint64_t access)
{
    struct landlock_path_beneath_attr rule = { .allowed_access = access, .parent_fd = path };

    return (int)syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
}

static int allow(int ruleset, const char *path, uint64_t access, struct error *err)
{
    autoclose int fd = open(path, O_PATH | O_CLOEXEC);

    if (fd < 0 && errno == ENOENT)
        return 0; /* an image need not have every directory */
    if (fd >= 0 && add_rule(ruleset, fd, access) == 0)
        return 0;
    if (fd < 0 || errno != EINVAL || add_rule(ruleset, fd, access & of_files) < 0)
        return error_sys(err, "add a Landlock rule for %s", path);
    return 0;
}

int domain_build(int abi, char *const *writable, size_t count, struct error *err)
{
    uint64_t all = handled(abi);
    struct ruleset attributes = {
        .files = all,
        .scoped = abi >= 6 ? SCOPE_ABSTRACT_SOCKET | SCOPE_SIGNAL : 0,
    };
    size_t size = abi >= 6 ? sizeof attributes : abi >= 4 ? 16 : 8;
    autoclose int ruleset = (int)syscall(SYS_landlock_create_ruleset, &attributes, size, 0);

    if (ruleset < 0)
        return error_sys(err, "make a Landlock ruleset");
    if (allow(ruleset, "/", reading, err) < 0)
        return -1;
    for (size_t i = 0; i < count; i++)
        if (allow(ruleset, writable[i], all & ~never, err) < 0)
            return -1;
    return steal_fd(&ruleset);
}
