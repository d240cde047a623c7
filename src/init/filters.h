#pragma once

/* The seccomp filters of a sandbox, made at build time from syscalls.def (docs/seccomp.md). */

#include <linux/filter.h>
#include <linux/seccomp.h>

/* Filters of commands are picked by or-ing; init's is one of its own.
 *
 * A filter holds for all descendants, and the strictest answer of all filters wins.  So init's
 * allows all that any command may do and what building the sandbox needs.  What it refuses it
 * answers with a notification that nobody listens to, which the kernel turns into ENOSYS: unlike
 * an errno it does not outrank the notifications of an explained command. */
enum filter_kind {
    FILTER_DEFAULT = 0,
    FILTER_STRICT = 1 << 0,   /* no debugging of others, no AIO, no internet sockets */
    FILTER_FAKEROOT = 1 << 1, /* changes of owner and identity succeed without effect */
    FILTER_EXPLAIN = 1 << 2,  /* refused calls, and calls with a path or address, wait for a supervisor */
    FILTER_INIT = 1 << 3,
    FILTER_COUNT,
};

struct filter {
    const struct sock_filter *code;
    unsigned short len;
};

extern const struct filter filters[FILTER_COUNT];

/* For the supervisor of an explained command: what becomes of the call `data` under `kind`
 * without FILTER_EXPLAIN.  The errno to answer (0 is success without effect), or one of these. */
enum { VERDICT_ALLOW = -1, VERDICT_KILL = -2 };
int filter_verdict(unsigned kind, const struct seccomp_data *data);

/* The name of a call, "unknown" if the table has none for the number, and why it is refused, in
 * the words of syscalls.def.  Never NULL; the reason of an allowed call is of no use. */
const char *filter_call_name(int number);
const char *filter_reason(unsigned kind, const struct seccomp_data *data);
