/* What the clone takes from itself before it is PID 1. */

#include "box/confine.h"

#include "base/array.h"
#include "base/error.h"
#include "box/plan.h"
#include "init/filters.h"
#include "init/protocol.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What init keeps: to mount layers, to give commands their user, to take rights from them; and
 * what root in the box may have, because nobody can give what they have not. */
static const unsigned init_capabilities[] = {
    CAP_CHOWN,  CAP_DAC_OVERRIDE, CAP_FOWNER,  CAP_FSETID,           CAP_KILL,
    CAP_SETGID, CAP_SETUID,       CAP_SETPCAP, CAP_NET_BIND_SERVICE, CAP_SYS_ADMIN,
};

static uint64_t kept_capabilities(void)
{
    uint64_t kept = 0;

    for (size_t i = 0; i < ARRAY_LEN(init_capabilities); i++)
        kept |= 1ULL << init_capabilities[i];
    return kept;
}

/* What our caller ignored is neither init's nor a command's: an ignored SIGCHLD would reap for it.  By
 * the kernel's own call: libc keeps a few signals to itself and refuses to touch them. */
static void forget_signals(void)
{
    const unsigned long plain[4] = { (unsigned long)SIG_DFL };

    for (int signal = 1; signal < 65; signal++)
        (void)syscall(SYS_rt_sigaction, signal, plain, NULL, 8UL);
}

/* What a command drops again, and counts (init/command.c): here it takes nobody's time. */
static int shrink_bounding_set(struct error *err)
{
    uint64_t kept = kept_capabilities();

    for (unsigned cap = 0; cap < 64; cap++)
        if (!(kept >> cap & 1) && prctl(PR_CAPBSET_DROP, cap) < 0)
            return errno == EINVAL ? 0 : error_sys(err, "drop the capability bounding set");
    return 0;
}

/* Everything inside inherits this filter, so it refuses only what no process inside ever needs. */
static int install_filter(struct error *err)
{
    const struct filter *filter = &filters[FILTER_INIT];
    struct sock_fprog program = { .len = filter->len, .filter = (struct sock_filter *)(uintptr_t)filter->code };

    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
        return error_sys(err, "install the seccomp filter of init");
    return 0;
}

int confine_early(const struct plan *plan, struct error *err)
{
    forget_signals();
    /* When the host runs out of memory, it is not the owner's programs that have to go.  A wish: whoever is
     * inside can take it back for themselves. */
    (void)sys_write_file(AT_FDCWD, "/proc/self/oom_score_adj", "1000");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return error_sys(err, "set no-new-privileges");
    if (!start_leaves_out(plan->start_flags, START_NO_CAPS) && shrink_bounding_set(err) < 0)
        return -1;
    return start_leaves_out(plan->start_flags, START_NO_SECCOMP) ? 0 : install_filter(err);
}

int confine_rights(const struct ids *ids, struct error *err)
{
    uint64_t kept = kept_capabilities();

    if (prctl(PR_SET_KEEPCAPS, 1) < 0)
        return error_sys(err, "keep capabilities over a change of user");
    if ((ids->shifted || ids->helpers) &&
        (setresgid(ids->init, ids->init, ids->init) < 0 || setresuid(ids->init, ids->init, ids->init) < 0))
        return error_sys(err, "become the user of init");
    if (sys_capabilities_set(kept, kept, kept) < 0)
        return error_sys(err, "keep the capabilities of init");
    for (size_t i = 0; i < ARRAY_LEN(init_capabilities); i++)
        if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, init_capabilities[i], 0, 0) < 0)
            return error_sys(err, "keep the capabilities of init over exec");
    return 0;
}
