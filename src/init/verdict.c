#include "init/bpf_run.h"
#include "init/filters.h"
#include "init/policy.h"

/* Runs the plain program itself, so that explained commands cannot get other answers than plain
 * ones.  It looks at registers only, and those cannot change while a call waits: to let the call
 * continue after this is safe, unlike after a look at memory. */
int filter_verdict(unsigned kind, const struct seccomp_data *data)
{
    const struct filter *plain = &filters[kind & ~(unsigned)FILTER_EXPLAIN];
    uint32_t action = bpf_run(plain->code, plain->len, data);

    switch (action & SECCOMP_RET_ACTION_FULL) {
    case SECCOMP_RET_ALLOW:
        return VERDICT_ALLOW;
    case SECCOMP_RET_ERRNO:
        return (int)(action & SECCOMP_RET_DATA);
    default:
        return VERDICT_KILL;
    }
}

const char *filter_call_name(int number)
{
    const struct call *call = policy_call(ARCH_NATIVE, number);

    return call ? call->name : "unknown";
}

static bool test_holds(const struct test *test, const struct seccomp_data *data)
{
    uint32_t word = (uint32_t)(data->args[test->arg] >> (test->high ? 32 : 0));

    switch (test->op) {
    case TEST_BITS:
        return (word & test->mask) == test->value;
    case TEST_AT_MOST:
        return word <= test->value;
    case TEST_NONE:
        break;
    }
    return true;
}

static bool clause_holds(const struct clause *clause, const struct seccomp_data *data)
{
    for (size_t i = 0; i < TESTS_MAX; i++)
        if (!test_holds(&clause->tests[i], data))
            return false;
    return true;
}

const char *filter_reason(unsigned kind, const struct seccomp_data *data)
{
    const struct call *call = policy_call(ARCH_NATIVE, data->nr);

    if (!call)
        return "newer than the filter";
    for (size_t i = 0; i < clauses_len; i++)
        if (clauses[i].rule == call->rule && policy_clause_holds_for(&clauses[i], kind) &&
            clause_holds(&clauses[i], data))
            return clauses[i].why;
    return call->why;
}
