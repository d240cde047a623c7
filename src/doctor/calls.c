/* System calls that a start makes and that an older kernel, or somebody's filter around us, may not have. */

#include "base/array.h"
#include "base/own.h"
#include "doctor/probes.h"
#include "doctor/trial.h"
#include "sys/sys.h"

#include <errno.h>
#include <linux/sched.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { BAD = -1 };

/* Each is asked for something that cannot be, which a kernel that has it answers with an error about the
 * arguments.  clone3 is tried by the check of user namespaces, seccomp and Landlock by theirs. */
static const struct {
    const char *name;
    long number;
    long arguments[5];
    bool root; /* only root's mounter makes it */
} calls[] = {
    { "openat2", SYS_openat2, { BAD, 0, 0, 0 } },
    { "open_tree", SYS_open_tree, { BAD, (long)"", BAD } },
    { "move_mount", SYS_move_mount, { BAD, (long)"", BAD, (long)"", BAD } },
    { "mount_setattr", SYS_mount_setattr, { BAD, (long)"", BAD, 0, 0 } },
    { "mount", SYS_mount, { (long)"", (long)"", (long)"", 0, 0 } },
    { "umount2", SYS_umount2, { (long)"", BAD } },
    { "pivot_root", SYS_pivot_root, { (long)"", (long)"" } },
    { "setns", SYS_setns, { BAD, 0 }, .root = true },
    { "unshare", SYS_unshare, { BAD } },
    { "capset", SYS_capset, { 0, 0 } },
    { "prctl", SYS_prctl, { BAD } },
    { "statx", SYS_statx, { BAD, (long)"", BAD, BAD, 0 } },
    { "execveat", SYS_execveat, { BAD, (long)"", 0, 0, BAD } },
    { "close_range", SYS_close_range, { 1, 0, 0 } },
    { "memfd_create", SYS_memfd_create, { (long)"", BAD } },
    { "renameat2", SYS_renameat2, { BAD, (long)"", BAD, (long)"", BAD } },
};

static bool is_refusal(int number)
{
    return number == ENOSYS || number == EPERM || number == EACCES;
}

static int try_calls(const void *subject, struct error *err)
{
    const struct patient *patient = subject;

    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        const long *with = calls[i].arguments;

        if (calls[i].root && !patient->host.root)
            continue;
        if (syscall(calls[i].number, with[0], with[1], with[2], with[3], with[4]) < 0 && is_refusal(errno))
            return error_sys(err, "%s", calls[i].name);
    }
    return 0;
}

/* In namespaces, as the start makes them: outside, some are refused for want of rights. */
void probe_calls(const struct patient *patient, struct finding *finding)
{
    struct trial trial = {
        .namespaces = CLONE_NEWUSER | CLONE_NEWNS, .ids = &patient->ids, .act = try_calls, .subject = patient
    };
    struct error err = { 0 };

    if (trial_run(&trial, &err) < 0)
        found_error(finding, DOCTOR_MISSING, &err);
    else
        found(finding, DOCTOR_OK, "all of the newer ones are there");
}

void probe_memfd(const struct patient *patient, struct finding *finding)
{
    autoclose int fd = sys_sealed_memfd("cove-doctor", "#!", 2);
    struct error err = { 0 };
    struct stat status;

    (void)patient;
    if (fd < 0 || fstat(fd, &status) < 0) {
        error_sys(&err, "make a sealed memfd");
        found_error(finding, DOCTOR_MISSING, &err);
    } else if (!(status.st_mode & S_IXUSR)) {
        found(finding, DOCTOR_MISSING, "what is made in memory cannot be executed");
    } else {
        found(finding, DOCTOR_OK, "programs can be made in memory, sealed, and run");
    }
}
