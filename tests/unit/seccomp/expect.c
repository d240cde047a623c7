#include "expect.h"

#include "base/array.h"
#include "init/filters.h"

#include <errno.h>
#include <linux/audit.h>
#include <string.h>

typedef int decide(unsigned kind, const uint32_t *low, const struct seccomp_data *data);

static bool payload(unsigned kind)
{
    return !(kind & FILTER_INIT);
}

static int decide_clone(unsigned kind, const uint32_t *low, const struct seccomp_data *data)
{
    (void)data;
    return payload(kind) && (low[0] & 0x7e020000) ? EPERM : EXPECT_ALLOW;
}

static int decide_unshare(unsigned kind, const uint32_t *low, const struct seccomp_data *data)
{
    (void)data;
    return payload(kind) && (low[0] | 0x40600) != 0x40600 ? EPERM : EXPECT_ALLOW;
}

static int decide_unix(uint32_t type)
{
    return type == 1 || type == 2 || type == 5 ? EXPECT_ALLOW : ESOCKTNOSUPPORT;
}

static int decide_inet(uint32_t type, uint32_t protocol)
{
    static const uint32_t own[] = { [1] = 6, [2] = 17 };

    if (type == 1 || type == 2)
        return protocol == 0 || protocol == own[type] ? EXPECT_ALLOW : EPROTONOSUPPORT;
    return type == 3 ? EPERM : ESOCKTNOSUPPORT;
}

static int decide_socket(unsigned kind, const uint32_t *low, const struct seccomp_data *data)
{
    uint32_t type = low[1] & 15;

    (void)data;
    if (low[0] == 1)
        return decide_unix(type);
    if ((low[0] == 2 || low[0] == 10) && !(kind & FILTER_STRICT))
        return decide_inet(type, low[2]);
    if (low[0] == 16)
        return low[2] == 0 || (low[2] == 12 && !payload(kind)) ? EXPECT_ALLOW : EPROTONOSUPPORT;
    return EAFNOSUPPORT;
}

static int decide_socketpair(unsigned kind, const uint32_t *low, const struct seccomp_data *data)
{
    (void)kind;
    (void)data;
    return low[0] == 1 ? decide_unix(low[1] & 15) : EAFNOSUPPORT;
}

static int decide_setsockopt(unsigned kind, const uint32_t *low, const struct seccomp_data *data)
{
    (void)kind;
    (void)data;
    if (low[1] == 1 && (low[2] == 25 || low[2] == 50 || low[2] == 52 || low[2] == 62))
        return EPERM;
    return low[1] == 6 && low[2] == 31 ? ENOPROTOOPT : EXPECT_ALLOW;
}

static int decide_ioctl(unsigned kind, const uint32_t *low, const struct seccomp_data *data)
{
    uint32_t command = low[1];

    (void)kind;
    (void)data;
    if (command == 0x5412 || command == 0x541c || command == 0x541d || command == 0x5423)
        return EPERM;
    return command >> 8 == 0x4b || command >> 8 == 0x56 ? EPERM : EXPECT_ALLOW;
}

static int decide_personality(unsigned kind, const uint32_t *low, const struct seccomp_data *data)
{
    static const uint32_t harmless[] = { 0, 8, 0x20000, 0x20008, 0xffffffff };

    (void)data;
    for (size_t i = 0; i < ARRAY_LEN(harmless); i++)
        if (low[0] == harmless[i])
            return EXPECT_ALLOW;
    return low[0] == 0x40000 && !(kind & FILTER_STRICT) ? EXPECT_ALLOW : EPERM;
}

static int decide_node(unsigned kind, uint32_t mode)
{
    switch (mode >> 12 & 15) {
    case 0:
    case 010:
    case 001:
    case 014:
        return EXPECT_ALLOW;
    case 002:
    case 006:
        return kind & FILTER_FAKEROOT ? 0 : EPERM;
    default:
        return EPERM;
    }
}

static int decide_mknod(unsigned kind, const uint32_t *low, const struct seccomp_data *data)
{
    (void)data;
    return decide_node(kind, low[1]);
}

static int decide_mknodat(unsigned kind, const uint32_t *low, const struct seccomp_data *data)
{
    (void)data;
    return decide_node(kind, low[2]);
}

static int decide_prlimit(unsigned kind, const uint32_t *low, const struct seccomp_data *data)
{
    if (!payload(kind) || data->args[2] == 0)
        return EXPECT_ALLOW;
    if (low[0] != 0)
        return EPERM;
    return low[1] == 4 ? 0 : EXPECT_ALLOW;
}

static int decide_setrlimit(unsigned kind, const uint32_t *low, const struct seccomp_data *data)
{
    (void)data;
    return payload(kind) && low[0] == 4 ? 0 : EXPECT_ALLOW;
}

static int decide_prctl(unsigned kind, const uint32_t *low, const struct seccomp_data *data)
{
    (void)data;
    if (!payload(kind))
        return EXPECT_ALLOW;
    if (low[0] == 35 || low[0] == 62 || low[0] == 67)
        return EPERM;
    if (low[0] == 0x53564d41 || low[0] == 0x41555856 || low[0] == 0x59616d61)
        return EXPECT_ALLOW;
    return low[0] <= 78 ? EXPECT_ALLOW : EINVAL;
}

static const struct {
    const char *name;
    decide *decide;
} deciders[] = {
    { "clone", decide_clone },
    { "unshare", decide_unshare },
    { "socket", decide_socket },
    { "socketpair", decide_socketpair },
    { "setsockopt", decide_setsockopt },
    { "ioctl", decide_ioctl },
    { "personality", decide_personality },
    { "mknod", decide_mknod },
    { "mknodat", decide_mknodat },
    { "prlimit64", decide_prlimit },
    { "setrlimit", decide_setrlimit },
    { "prctl", decide_prctl },
};

static int decide_by_row(const struct call *call, unsigned kind)
{
    if (!payload(kind) && call->mark == MARK_INIT)
        return EXPECT_ALLOW;
    if ((kind & FILTER_STRICT) && call->mark == MARK_STRICT_EPERM)
        return EPERM;
    if ((kind & FILTER_STRICT) && call->mark == MARK_STRICT_ENOSYS)
        return ENOSYS;
    if ((kind & FILTER_FAKEROOT) && call->mark == MARK_FAKED)
        return 0;
    if (strcmp(call->rule_name, "ALLOW") == 0)
        return EXPECT_ALLOW;
    return strcmp(call->rule_name, "EPERM") == 0 ? EPERM : ENOSYS;
}

static int decide_call(const struct call *call, unsigned kind, const struct seccomp_data *data)
{
    uint32_t low[6];

    for (size_t i = 0; i < ARRAY_LEN(low); i++)
        low[i] = (uint32_t)data->args[i];
    for (size_t i = 0; i < ARRAY_LEN(deciders); i++)
        if (strcmp(deciders[i].name, call->name) == 0)
            return deciders[i].decide(kind, low, data);
    return decide_by_row(call, kind);
}

int expect(enum arch arch, unsigned kind, const struct seccomp_data *data)
{
    const struct call *call = policy_call(arch, data->nr);
    int verdict = ENOSYS;

    if (data->arch != (arch == ARCH_ARM64 ? AUDIT_ARCH_AARCH64 : AUDIT_ARCH_X86_64))
        return EXPECT_KILL;
    if (arch == ARCH_X86_64 && data->nr != -1 && ((uint32_t)data->nr & 0xc0000000))
        return EXPECT_KILL;
    if (call)
        verdict = decide_call(call, kind, data);
    return verdict > 0 && !payload(kind) ? ENOSYS : verdict;
}
