/* What a command is told no by, besides mounts: seccomp and Landlock. */

#include "base/array.h"
#include "base/own.h"
#include "doctor/probes.h"
#include "doctor/trial.h"
#include "init/filters.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

static int give_up_privileges(struct error *err)
{
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? error_sys(err, "set no-new-privileges") : 0;
}

static int install(enum filter_kind kind, unsigned long flags, struct error *err)
{
    const struct filter *filter = &filters[kind];
    struct sock_fprog program = { .len = filter->len, .filter = (struct sock_filter *)(uintptr_t)filter->code };

    if (give_up_privileges(err) < 0)
        return -1;
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program) < 0
               ? error_sys(err, "install a seccomp filter%s", flags ? " with a listener" : "")
               : 0;
}

static int try_filter(const void *subject, struct error *err)
{
    (void)subject;
    return install(FILTER_DEFAULT, 0, err);
}

static int try_listener(const void *subject, struct error *err)
{
    return install(FILTER_EXPLAIN, *(const unsigned long *)subject, err);
}

void probe_seccomp(const struct patient *patient, struct finding *finding)
{
    struct trial trial = { .act = try_filter };
    struct error err = { 0 };

    (void)patient;
    if (trial_run(&trial, &err) < 0)
        found_error(finding, DOCTOR_MISSING, &err);
    else
        found(finding, DOCTOR_OK, "the filter of commands was installed");
}

void probe_listener(const struct patient *patient, struct finding *finding)
{
    static const unsigned long plain = SECCOMP_FILTER_FLAG_NEW_LISTENER;
    static const unsigned long killable = plain | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    struct trial trial = { .act = try_listener, .subject = &killable };
    struct error err = { 0 };

    (void)patient;
    if (trial_run(&trial, &err) == 0) {
        found(finding, DOCTOR_OK, "refused calls can be explained");
        return;
    }
    trial.subject = &plain;
    if (err.sys_errno == EINVAL && trial_run(&trial, &err) == 0)
        found(finding, DOCTOR_OK,
              "refused calls can be explained (without WAIT_KILLABLE_RECV, which is newer)");
    else
        found_error(finding, DOCTOR_ABSENT, &err);
}

/* What each version of Landlock added of what we use (init/domain.c). */
static const struct {
    int abi;
    const char *adds;
} landlock_adds[] = {
    { 2, "renames between directories" },
    { 3, "truncation" },
    { 5, "ioctls of devices" },
    { 6, "signals and abstract sockets" },
};

static int try_domain(const void *subject, struct error *err)
{
    const uint64_t files = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_FILE;
    autoclose int ruleset = sys_landlock_create(&files, sizeof files), root = -1;

    (void)subject;
    if (ruleset < 0)
        return error_sys(err, "make a Landlock ruleset");
    root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0 || sys_landlock_path(ruleset, root, LANDLOCK_ACCESS_FS_READ_FILE) < 0)
        return error_sys(err, "add a Landlock rule");
    if (give_up_privileges(err) < 0)
        return -1;
    return syscall(SYS_landlock_restrict_self, ruleset, 0) < 0 ? error_sys(err, "enter a Landlock domain") : 0;
}

void probe_landlock(const struct patient *patient, struct finding *finding)
{
    autotext struct text lacks = TEXT_NONE;
    struct trial trial = { .act = try_domain };
    struct error err = { 0 };
    int abi = sys_landlock_abi();

    (void)patient;
    for (size_t i = 0; i < ARRAY_LEN(landlock_adds); i++)
        if (abi < landlock_adds[i].abi)
            text_addf(&lacks, "%s%s", lacks.len ? ", " : "", landlock_adds[i].adds);
    if (abi == 0) {
        found(finding, DOCTOR_FALLBACK, "this kernel has none, or it is switched off");
    } else if (trial_run(&trial, &err) < 0) {
        found_error(finding, DOCTOR_MISSING, &err);
        found_fix(
            finding,
            "let Cove use it, or switch it off as a whole (lsm= without landlock): half of it is refused");
    } else if (lacks.len) {
        found(finding, DOCTOR_FALLBACK, "ABI %d, which knows nothing of %s", abi, text_string(&lacks));
    } else {
        found(finding, DOCTOR_OK, "ABI %d", abi);
    }
}
