#pragma once

/* syscalls.def as tables: for the generator of the filters, for their tests and their document,
 * and for the reasons that are shown at run time.  Columns: see there. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum arch { ARCH_X86_64, ARCH_ARM64, ARCH_COUNT };

#ifdef __aarch64__
#define ARCH_NATIVE ARCH_ARM64
#else
#define ARCH_NATIVE ARCH_X86_64
#endif

enum rule {
    RULE_ALLOW,
    RULE_FAKED,
    RULE_EPERM,
    RULE_ENOSYS,
    RULE_EINVAL,
    RULE_EAFNOSUPPORT,
    RULE_EPROTONOSUPPORT,
    RULE_ESOCKTNOSUPPORT,
    RULE_ENOPROTOOPT,
    /* from here on decided by clauses */
    RULE_CLONE,
    RULE_UNSHARE,
    RULE_SOCKET,
    RULE_SOCKETPAIR,
    RULE_SETSOCKOPT,
    RULE_IOCTL,
    RULE_PERSONALITY,
    RULE_MKNOD,
    RULE_MKNODAT,
    RULE_PRLIMIT,
    RULE_SETRLIMIT,
    RULE_PRCTL,
};

enum mark {
    MARK_PLAIN,
    MARK_PATH,
    MARK_FAKED,
    MARK_STRICT_EPERM,
    MARK_STRICT_ENOSYS,
    MARK_INIT,
    MARK_SILENT,
};

enum who { WHO_EVERYONE, WHO_PAYLOAD, WHO_RELAXED, WHO_INIT, WHO_FAKEROOT };

/* Texts are in the rows, not pointed to: a pointer is a page that each process has for itself. */
enum { WORD_MAX = 32, WHY_MAX = 112, CONDITION_MAX = 160 };

struct call {
    char name[WORD_MAX];
    short number[ARCH_COUNT]; /* -1: the architecture has none */
    enum rule rule;
    enum mark mark;
    char why[WHY_MAX];
    char rule_name[WORD_MAX];
};

enum test_op { TEST_NONE, TEST_BITS, TEST_AT_MOST };

enum { TESTS_MAX = 3 };

struct test {
    enum test_op op;
    unsigned char arg;
    bool high; /* the upper half of the argument, otherwise the lower */
    uint32_t mask, value;
};

struct clause {
    enum rule rule;
    enum who who;
    enum rule verdict;
    char why[WHY_MAX];
    struct test tests[TESTS_MAX];
    char verdict_name[WORD_MAX], condition[CONDITION_MAX]; /* as written in the table */
};

extern const struct call calls[];
extern const size_t calls_len;
extern const struct clause clauses[];
extern const size_t clauses_len;

/* What a filter (enum filter_kind, or-ed) makes of a call, and whether a clause is for it. */
enum rule policy_rule(const struct call *call, unsigned kind);
bool policy_clause_holds_for(const struct clause *clause, unsigned kind);

/* The errno of a rule that refuses; 0 of others. */
int policy_errno(enum rule rule);

/* NULL if the table has no such call. */
const struct call *policy_call(enum arch arch, int number);
