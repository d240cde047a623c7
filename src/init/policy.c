#include "init/policy.h"

#include "base/array.h"
#include "init/filters.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* Newer than the headers of some supported system. */
#ifndef PR_SET_MEMORY_MERGE
#define PR_SET_MEMORY_MERGE 67
#endif
#ifndef PR_FUTEX_HASH
#define PR_FUTEX_HASH 78
#endif
#ifndef PR_GET_AUXV
#define PR_GET_AUXV 0x41555856
#endif

/* CLONE_NEWTIME is not among them: for clone(2) its bit belongs to the exit signal. */
#define CLONE_NAMESPACES                                                                                       \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)

/* clang-format off */
#define NONE (-1)
#define BITS(arg, mask, value) { TEST_BITS, arg, false, mask, value }
#define IS(arg, value) BITS(arg, UINT32_MAX, value)
#define AT_MOST(arg, value) { TEST_AT_MOST, arg, false, UINT32_MAX, value }
#define NO_POINTER(arg) IS(arg, 0), { TEST_BITS, arg, true, UINT32_MAX, 0 }
#define OTHERWISE { .op = TEST_NONE }
/* The kernel takes the type from the low four bits; the rest are flags such as SOCK_CLOEXEC. */
#define SOCK_TYPE(arg, type) BITS(arg, 0xf, type)
/* Both families in one test, which spares a copy of their clauses: they differ in one bit. */
#define INTERNET(arg) BITS(arg, (uint32_t)~(AF_INET ^ AF_INET6), AF_INET & AF_INET6)
/* clang-format on */
_Static_assert((AF_INET ^ AF_INET6) == 8, "one bit between AF_INET and AF_INET6");

/* A text that fits to the last byte would have no end. */
#define CALL(name, x86_64, arm64, rule, mark, why)                                                             \
    _Static_assert(sizeof #name <= WORD_MAX && sizeof #rule <= WORD_MAX && sizeof(why) <= WHY_MAX,             \
                   "too long: " #name);
#define ARGS(rule, who, verdict, why, ...)                                                                     \
    _Static_assert(sizeof #verdict <= WORD_MAX && sizeof(why) <= WHY_MAX &&                                    \
                       sizeof #__VA_ARGS__ <= CONDITION_MAX,                                                   \
                   "too long: " #rule);
#include "init/syscalls.def"

#define CALL(name, x86_64, arm64, rule, mark, why)                                                             \
    { #name, { x86_64, arm64 }, RULE_##rule, MARK_##mark, why, #rule },
#define ARGS(...)

const struct call calls[] = {
#include "init/syscalls.def"
};
const size_t calls_len = ARRAY_LEN(calls);

#define CALL(...)
#define ARGS(rule, who, verdict, why, ...)                                                                     \
    { RULE_##rule, WHO_##who, RULE_##verdict, why, { __VA_ARGS__ }, #verdict, #__VA_ARGS__ },

const struct clause clauses[] = {
#include "init/syscalls.def"
};
const size_t clauses_len = ARRAY_LEN(clauses);

static enum rule rule_for_init(const struct call *call)
{
    return call->mark == MARK_INIT ? RULE_ALLOW : call->rule;
}

enum rule policy_rule(const struct call *call, unsigned kind)
{
    if (kind & FILTER_INIT)
        return rule_for_init(call);
    if ((kind & FILTER_STRICT) && call->mark == MARK_STRICT_EPERM)
        return RULE_EPERM;
    if ((kind & FILTER_STRICT) && call->mark == MARK_STRICT_ENOSYS)
        return RULE_ENOSYS;
    if ((kind & FILTER_FAKEROOT) && call->mark == MARK_FAKED)
        return RULE_FAKED;
    return call->rule;
}

bool policy_clause_holds_for(const struct clause *clause, unsigned kind)
{
    switch (clause->who) {
    case WHO_PAYLOAD:
        return !(kind & FILTER_INIT);
    case WHO_RELAXED:
        return !(kind & FILTER_STRICT);
    case WHO_INIT:
        return kind & FILTER_INIT;
    case WHO_FAKEROOT:
        return kind & FILTER_FAKEROOT;
    case WHO_EVERYONE:
        break;
    }
    return true;
}

int policy_errno(enum rule rule)
{
    static const int errors[] = {
        [RULE_EPERM] = EPERM,
        [RULE_ENOSYS] = ENOSYS,
        [RULE_EINVAL] = EINVAL,
        [RULE_EAFNOSUPPORT] = EAFNOSUPPORT,
        [RULE_EPROTONOSUPPORT] = EPROTONOSUPPORT,
        [RULE_ESOCKTNOSUPPORT] = ESOCKTNOSUPPORT,
        [RULE_ENOPROTOOPT] = ENOPROTOOPT,
    };

    return rule < ARRAY_LEN(errors) ? errors[rule] : 0;
}

const struct call *policy_call(enum arch arch, int number)
{
    for (size_t i = 0; i < calls_len; i++)
        if (number >= 0 && calls[i].number[arch] == number)
            return &calls[i];
    return NULL;
}
