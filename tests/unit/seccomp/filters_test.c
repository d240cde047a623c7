/* The filters against a second opinion (expect.c), by running them in the interpreter. */

#include "expect.h"

#include "base/array.h"
#include "init/bpf_run.h"
#include "init/filters.h"
#include "init/policy.h"

#include <errno.h>
#include <linux/audit.h>
#include <seccomp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include <setjmp.h>

#include <cmocka.h>

#include "filters_arm64.h"

enum { NUMBERS = 1024 };

#define FILTER(kind) [kind] = { filter_##kind, ARRAY_LEN(filter_##kind) }

static const struct filter arm64_filters[FILTER_COUNT] = {
    FILTER(0), FILTER(1), FILTER(2), FILTER(3), FILTER(4), FILTER(5), FILTER(6), FILTER(7), FILTER(8),
};

static const struct arch_filters {
    enum arch arch;
    uint32_t audit, libseccomp;
    const struct filter *filters;
} archs[] = {
    { ARCH_X86_64, AUDIT_ARCH_X86_64, SCMP_ARCH_X86_64, filters },
    { ARCH_ARM64, AUDIT_ARCH_AARCH64, SCMP_ARCH_AARCH64, arm64_filters },
};

static uint32_t run(const struct arch_filters *of, unsigned kind, const struct seccomp_data *data)
{
    return bpf_run(of->filters[kind].code, of->filters[kind].len, data);
}

/* ---- What must hold for every call ---- */

static uint32_t action_for(unsigned kind, int verdict)
{
    if (verdict == EXPECT_ALLOW)
        return SECCOMP_RET_ALLOW;
    if (verdict == EXPECT_KILL)
        return SECCOMP_RET_KILL_PROCESS;
    return kind == FILTER_INIT ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ERRNO | (uint32_t)verdict;
}

static void complain(const char *what, unsigned kind, const struct seccomp_data *data, uint32_t is)
{
    fail_msg("%s: filter %u, arch %x, call %d (%llx, %llx, %llx): got %x", what, kind, data->arch, data->nr,
             data->args[0], data->args[1], data->args[2], is);
}

/* A tracer sets -1 to skip a call, and each new thread tries clone3: neither is worth a question. */
static bool is_silent(const struct arch_filters *of, const struct seccomp_data *data)
{
    const struct call *call = policy_call(of->arch, data->nr);

    return data->nr == -1 || (call && strcmp(call->name, "clone3") == 0);
}

static void check_plain(const struct arch_filters *of, unsigned kind, const struct seccomp_data *data)
{
    uint32_t is = run(of, kind, data), want = action_for(kind, expect(of->arch, kind, data));

    if (is_silent(of, data))
        want = kind == FILTER_INIT && data->nr != -1 ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ERRNO | ENOSYS;
    if (data->arch != of->audit)
        want = SECCOMP_RET_KILL_PROCESS;
    if (is != want)
        complain("not as expected", kind, data, is);
}

/* A notification stands for a refusal, a path or an address; everything else is as in the plain filter. */
static void check_explained(const struct arch_filters *of, unsigned kind, const struct seccomp_data *data)
{
    uint32_t is = run(of, kind | FILTER_EXPLAIN, data), plain = run(of, kind, data);
    const struct call *call = policy_call(of->arch, data->nr);
    bool refused = (plain & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO && plain != SECCOMP_RET_ERRNO;
    bool path = call && call->mark == MARK_PATH && plain == SECCOMP_RET_ALLOW;

    if (is != ((refused && !is_silent(of, data)) || path ? SECCOMP_RET_USER_NOTIF : plain))
        complain("explained otherwise", kind, data, is);
    if (of->arch == ARCH_NATIVE && filter_verdict(kind | FILTER_EXPLAIN, data) != filter_verdict(kind, data))
        complain("verdict differs", kind, data, is);
}

static void check_order(const struct arch_filters *of, unsigned kind, const struct seccomp_data *data)
{
    if (run(of, kind, data) != SECCOMP_RET_ALLOW)
        return;
    if (run(of, FILTER_INIT, data) != SECCOMP_RET_ALLOW)
        complain("allowed to a command, but refused by init's filter", kind, data, 0);
    if ((kind & FILTER_STRICT) && run(of, kind & ~FILTER_STRICT, data) != SECCOMP_RET_ALLOW)
        complain("allowed by strict only", kind, data, 0);
}

static void check(const struct arch_filters *of, const struct seccomp_data *data)
{
    check_plain(of, FILTER_INIT, data);
    for (unsigned kind = 0; kind < FILTER_EXPLAIN; kind++) {
        check_plain(of, kind, data);
        check_explained(of, kind, data);
        check_order(of, kind, data);
    }
}

static void check_halves(const struct arch_filters *of, struct seccomp_data data)
{
    check(of, &data);
    for (size_t i = 0; i < ARRAY_LEN(data.args); i++)
        data.args[i] |= 0xdeadbeef00000000;
    check(of, &data);
}

/* ---- Sweeps ---- */

static void every_number_is_answered_as_the_table_says(void **state)
{
    static const uint64_t fill[] = { 0, 1, UINT32_MAX, UINT64_MAX, 0x5555555555555555, 1ULL << 32 };

    (void)state;
    for (size_t a = 0; a < ARRAY_LEN(archs); a++)
        for (int number = -3; number < NUMBERS; number++)
            for (size_t i = 0; i < ARRAY_LEN(fill); i++)
                check(
                    &archs[a],
                    &(struct seccomp_data){
                        number, archs[a].audit, 0, { fill[i], fill[i], fill[i], fill[i], fill[i], fill[i] } });
}

static void foreign_architectures_and_x32_are_killed(void **state)
{
    static const uint32_t foreign[] = { AUDIT_ARCH_I386, AUDIT_ARCH_ARM, AUDIT_ARCH_S390X, 0 };

    (void)state;
    for (int number = 0; number < NUMBERS; number++) {
        struct seccomp_data x32 = { number | 0x40000000, AUDIT_ARCH_X86_64, 0, { 0 } };
        struct seccomp_data arm = { number, AUDIT_ARCH_AARCH64, 0, { 0 } };

        check(&archs[0], &x32);
        assert_int_equal(run(&archs[0], FILTER_DEFAULT, &x32), SECCOMP_RET_KILL_PROCESS);
        check(&archs[0], &arm);
        for (size_t i = 0; i < ARRAY_LEN(foreign); i++)
            check(&archs[i % 2], &(struct seccomp_data){ number, foreign[i], 0, { 0 } });
    }
}

/* Values at which some argument rule turns; to these come all powers of two. */
static const uint32_t corners[] = {
    0,       3,          5,          6,          9,          10,         12,         15,         16,
    17,      25,         26,         31,         34,         35,         36,         38,         40,
    47,      50,         51,         52,         58,         61,         62,         63,         66,
    67,      68,         77,         78,         79,         132,        136,        255,        262,
    0x4aff,  0x4b00,     0x4bff,     0x4c00,     0x5411,     0x5412,     0x5413,     0x541b,     0x541c,
    0x541d,  0x541e,     0x5423,     0x55ff,     0x5600,     0x56ff,     0x5700,     0x10005412, 0x20008,
    0x60000, 0x40008,    0x40600,    0x21ff,     0x61b6,     0x81a4,     0x11b6,     0xc1ff,     0x41ed,
    0xa1ff,  0xf000,     0x12000,    0x80001,    0x80802,    0x80003,    0x7e020000, 0x3d0f00,   0x1200011,
    0x4111,  0x53564d41, 0x41555856, 0x59616d61, 0x7fffffff, 0xfffffffe, 0xffffffff,
};

enum { CORNERS = ARRAY_LEN(corners) + 32 };

static uint32_t corner(size_t i)
{
    return i < 32 ? 1U << i : corners[i - 32];
}

/* Vectors from which one argument at a time is moved through all corners. */
static const uint64_t bases[][3] = {
    { 0, 0, 0 },  { 1, 1, 0 },  { 1, 5, 0 },          { 2, 1, 0 },          { 2, 1, 6 },          { 2, 2, 17 },
    { 2, 3, 1 },  { 10, 1, 0 }, { 10, 2, 0 },         { 16, 3, 0 },         { 16, 3, 12 },        { 3, 1, 50 },
    { 3, 6, 31 }, { 3, 1, 62 }, { 5, 7, 0x7fff0000 }, { 5, 7, 1ULL << 32 }, { 0, 7, 0x7fff0000 },
};

static void check_corners(const struct arch_filters *of, int number)
{
    for (size_t base = 0; base < ARRAY_LEN(bases); base++)
        for (size_t arg = 0; arg < 3; arg++)
            for (size_t i = 0; i < CORNERS; i++) {
                struct seccomp_data data = { number, of->audit, 0, { 0 } };

                memcpy(data.args, bases[base], sizeof bases[base]);
                data.args[arg] = corner(i);
                check_halves(of, data);
            }
}

static void every_argument_is_compared_at_its_corners(void **state)
{
    (void)state;
    for (size_t a = 0; a < ARRAY_LEN(archs); a++)
        for (size_t i = 0; i < calls_len; i++)
            if (calls[i].rule >= RULE_CLONE && calls[i].number[archs[a].arch] >= 0)
                check_corners(&archs[a], calls[i].number[archs[a].arch]);
}

static void every_kind_of_socket_is_decided(void **state)
{
    static const uint32_t protocols[] = { 0, 1, 2, 6, 12, 17, 33, 41, 50, 58, 103, 132, 136, 255, 256, 262 };

    (void)state;
    for (uint32_t family = 0; family < 64; family++)
        for (uint32_t type = 0; type < 16; type++)
            for (size_t i = 0; i < ARRAY_LEN(protocols); i++)
                check_halves(&archs[ARCH_X86_64],
                             (struct seccomp_data){
                                 SYS_socket, AUDIT_ARCH_X86_64, 0, { family, type | 0x80800, protocols[i] } });
}

/* ---- Cases written out, by the numbers of the system's headers ---- */

enum { CLONE_THREAD_FLAGS = 0x3d0f00, MSEAL = 462, LISTNS = 470 };

static const struct literal {
    int number;
    unsigned kind;
    uint64_t args[3];
    int want; /* EXPECT_ALLOW, EXPECT_KILL or an errno */
} literals[] = {
#ifdef __x86_64__
    { SYS_open, FILTER_STRICT, { 0 }, EXPECT_ALLOW },
    { SYS_fork, FILTER_STRICT, { 0 }, EXPECT_ALLOW },
    { SYS_mknod, 0, { 0, 0020666, 0x103 }, EPERM },
    { SYS_mknod, FILTER_FAKEROOT, { 0, 0020666, 0x103 }, 0 },
    { SYS_chown, FILTER_FAKEROOT, { 0 }, 0 },
    { SYS_chown, 0, { 0 }, EXPECT_ALLOW },
    { SYS_modify_ldt, 0, { 0 }, EPERM },
    { SYS_iopl, 0, { 3 }, EPERM },
    { SYS_uselib, 0, { 0 }, ENOSYS },
    { 335, 0, { 0 }, EXPECT_ALLOW },
#endif
    { SYS_read, FILTER_STRICT, { 0 }, EXPECT_ALLOW },
    { SYS_write, FILTER_STRICT, { 0 }, EXPECT_ALLOW },
    { SYS_openat, FILTER_STRICT, { 0 }, EXPECT_ALLOW },
    { SYS_execve, FILTER_STRICT, { 0 }, EXPECT_ALLOW },
    { SYS_futex, FILTER_STRICT, { 0 }, EXPECT_ALLOW },
    { SYS_mmap, FILTER_STRICT, { 0 }, EXPECT_ALLOW },
    { SYS_rt_sigreturn, FILTER_STRICT, { 0 }, EXPECT_ALLOW },
    { SYS_exit_group, FILTER_STRICT, { 0 }, EXPECT_ALLOW },
    { SYS_seccomp, FILTER_STRICT, { 0 }, EXPECT_ALLOW },
    { SYS_landlock_restrict_self, FILTER_STRICT, { 0 }, EXPECT_ALLOW },
    { MSEAL, FILTER_STRICT, { 0 }, EXPECT_ALLOW },
    { LISTNS, 0, { 0 }, ENOSYS },
    { 1023, 0, { 0 }, ENOSYS },
    { 512, 0, { 0 }, ENOSYS },
    { -1, 0, { 0 }, ENOSYS },
    { SYS_read | 0x40000000, 0, { 0 }, EXPECT_KILL },
    { SYS_clone3, 0, { 0 }, ENOSYS },
    { SYS_clone3, FILTER_INIT, { 0 }, ENOSYS },
    { SYS_clone, 0, { CLONE_THREAD_FLAGS }, EXPECT_ALLOW },
    { SYS_clone, 0, { 17 }, EXPECT_ALLOW },
    { SYS_clone, 0, { 0x10000011 }, EPERM },
    { SYS_clone, 0, { 0xffffffff10000011 }, EPERM },
    { SYS_clone, 0, { 0x20000 }, EPERM },
    { SYS_clone, FILTER_INIT, { 0x7e020011 }, EXPECT_ALLOW },
    { SYS_unshare, 0, { 0x10000000 }, EPERM },
    { SYS_unshare, 0, { 0x80 }, EPERM },
    { SYS_unshare, 0, { 0x600 }, EXPECT_ALLOW },
    { SYS_unshare, FILTER_INIT, { 0x10000000 }, EXPECT_ALLOW },
    { SYS_setns, 0, { 0 }, EPERM },
    { SYS_setns, FILTER_INIT, { 0 }, EXPECT_ALLOW },
    { SYS_mount, 0, { 0 }, EPERM },
    { SYS_mount, FILTER_INIT, { 0 }, EXPECT_ALLOW },
    { SYS_fsopen, 0, { 0 }, ENOSYS },
    { SYS_fsopen, FILTER_INIT, { 0 }, EXPECT_ALLOW },
    { SYS_open_tree, 0, { 0 }, ENOSYS },
    { SYS_pivot_root, 0, { 0 }, EPERM },
    { SYS_chroot, 0, { 0 }, EPERM },
    { SYS_io_uring_setup, 0, { 0 }, ENOSYS },
    { SYS_io_uring_setup, FILTER_INIT, { 0 }, ENOSYS },
    { SYS_io_setup, 0, { 0 }, EXPECT_ALLOW },
    { SYS_io_setup, FILTER_STRICT, { 0 }, ENOSYS },
    { SYS_ptrace, 0, { 0 }, EXPECT_ALLOW },
    { SYS_ptrace, FILTER_STRICT, { 0 }, EPERM },
    { SYS_process_vm_writev, FILTER_STRICT, { 0 }, EPERM },
    { SYS_bpf, 0, { 0 }, EPERM },
    { SYS_bpf, FILTER_INIT, { 0 }, ENOSYS },
    { SYS_perf_event_open, 0, { 0 }, EPERM },
    { SYS_userfaultfd, 0, { 0 }, EPERM },
    { SYS_keyctl, 0, { 0 }, EPERM },
    { SYS_add_key, FILTER_FAKEROOT, { 0 }, EPERM },
    { SYS_open_by_handle_at, 0, { 0 }, EPERM },
    { SYS_name_to_handle_at, 0, { 0 }, EXPECT_ALLOW },
    { SYS_kcmp, 0, { 0 }, EPERM },
    { SYS_pidfd_getfd, 0, { 0 }, EPERM },
    { SYS_reboot, FILTER_INIT, { 0 }, ENOSYS },
    { SYS_init_module, 0, { 0 }, EPERM },
    { SYS_clock_settime, 0, { 0 }, EPERM },
    { SYS_sethostname, 0, { 0 }, EPERM },
    { SYS_sethostname, FILTER_INIT, { 0 }, EXPECT_ALLOW },
    { SYS_socket, 0, { 2, 0x80801, 6 }, EXPECT_ALLOW },
    { SYS_socket, FILTER_STRICT, { 2, 1, 6 }, EAFNOSUPPORT },
    { SYS_socket, FILTER_STRICT, { 1, 1, 0 }, EXPECT_ALLOW },
    { SYS_socket, 0, { 2, 1, 262 }, EPROTONOSUPPORT },
    { SYS_socket, 0, { 2, 3, 1 }, EPERM },
    { SYS_socket, 0, { 2, 2, 1 }, EPROTONOSUPPORT },
    { SYS_socket, 0, { 10, 6, 0 }, ESOCKTNOSUPPORT },
    { SYS_socket, 0, { 38, 5, 0 }, EAFNOSUPPORT },
    { SYS_socket, 0, { 0xffffffff00000026, 5, 0 }, EAFNOSUPPORT },
    { SYS_socket, 0, { 16, 0x80003, 0 }, EXPECT_ALLOW },
    { SYS_socket, 0, { 16, 3, 12 }, EPROTONOSUPPORT },
    { SYS_socket, FILTER_INIT, { 16, 3, 12 }, EXPECT_ALLOW },
    { SYS_socketpair, 0, { 1, 1, 0 }, EXPECT_ALLOW },
    { SYS_socketpair, 0, { 30, 5, 0 }, EAFNOSUPPORT },
    { SYS_setsockopt, 0, { 3, 6, 31 }, ENOPROTOOPT },
    { SYS_setsockopt, 0, { 3, 1, 50 }, EPERM },
    { SYS_setsockopt, 0, { 3, 6, 1 }, EXPECT_ALLOW },
    { SYS_ioctl, 0, { 0, 0x5412, 0 }, EPERM },
    { SYS_ioctl, 0, { 0, 0x100005412, 0 }, EPERM },
    { SYS_ioctl, 0, { 0, 0x5401, 0 }, EXPECT_ALLOW },
    { SYS_ioctl, 0, { 0, 0x4b47, 0 }, EPERM },
    { SYS_personality, 0, { 0x40000 }, EXPECT_ALLOW },
    { SYS_personality, FILTER_STRICT, { 0x40000 }, EPERM },
    { SYS_personality, 0, { 0x400000 }, EPERM },
    { SYS_mknodat, 0, { 0, 0, 0010644 }, EXPECT_ALLOW },
    { SYS_mknodat, 0, { 0, 0, 0060644 }, EPERM },
    { SYS_fchownat, FILTER_FAKEROOT, { 0 }, 0 },
    { SYS_setuid, FILTER_FAKEROOT | FILTER_STRICT, { 0 }, 0 },
    { SYS_prlimit64, 0, { 1, 7, 0x7fff0000 }, EPERM },
    { SYS_prlimit64, 0, { 1, 7, 0 }, EXPECT_ALLOW },
    { SYS_prlimit64, 0, { 0, 7, 0x7fff0000 }, EXPECT_ALLOW },
    { SYS_prlimit64, 0, { 1, 7, 0x7fff00000000 }, EPERM },
    { SYS_prctl, 0, { 35 }, EPERM },
    { SYS_prctl, 0, { 15 }, EXPECT_ALLOW },
    { SYS_prctl, 0, { 1000 }, EINVAL },
};

static void calls_written_out_are_answered_so(void **state)
{
    const struct arch_filters *native = &archs[ARCH_NATIVE];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(literals); i++) {
        const struct literal *it = &literals[i];
        struct seccomp_data data = {
            (int)it->number, native->audit, 0, { it->args[0], it->args[1], it->args[2] }
        };
        uint32_t is = run(native, it->kind, &data);

        if (is != action_for(it->kind, it->want))
            complain("not as written", it->kind, &data, is);
    }
}

/* ---- The table ---- */

static void names_and_numbers_occur_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < calls_len; i++)
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(calls[i].name, calls[j].name);
            for (enum arch arch = 0; arch < ARCH_COUNT; arch++)
                if (calls[i].number[arch] == calls[j].number[arch] && calls[i].number[arch] != -1)
                    fail_msg("%s and %s have the same number", calls[i].name, calls[j].name);
        }
}

static void every_refusal_has_a_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < calls_len; i++)
        if ((calls[i].rule != RULE_ALLOW || calls[i].mark == MARK_STRICT_EPERM) && !*calls[i].why)
            fail_msg("no reason: %s", calls[i].name);
    for (size_t i = 0; i < clauses_len; i++)
        if (policy_errno(clauses[i].verdict) && !*clauses[i].why)
            fail_msg("no reason: %s", clauses[i].condition);
}

static bool same_tests(const struct clause *a, const struct clause *b)
{
    for (size_t i = 0; i < TESTS_MAX; i++) {
        const struct test *x = &a->tests[i], *y = &b->tests[i];

        if (x->op != y->op || x->arg != y->arg || x->high != y->high || x->mask != y->mask ||
            x->value != y->value)
            return false;
    }
    return true;
}

/* Whether `early` leaves nothing to `late` in some filter. */
static bool hides(const struct clause *early, const struct clause *late, unsigned kind)
{
    return early->rule == late->rule && policy_clause_holds_for(early, kind) &&
           policy_clause_holds_for(late, kind) && early->who != WHO_INIT &&
           (early->tests[0].op == TEST_NONE || same_tests(early, late));
}

static void no_clause_is_unreachable(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < FILTER_COUNT; kind++)
        for (size_t i = 0; i < clauses_len; i++)
            for (size_t j = 0; j < i; j++)
                if (hides(&clauses[j], &clauses[i], kind))
                    fail_msg("%s: never reached", clauses[i].condition);
}

static void libseccomp_agrees_about_names_and_numbers(void **state)
{
    (void)state;
    for (size_t a = 0; a < ARRAY_LEN(archs); a++)
        for (int number = 0; number < NUMBERS; number++) {
            char *theirs = seccomp_syscall_resolve_num_arch(archs[a].libseccomp, number);
            const struct call *ours = policy_call(archs[a].arch, number);

            if (theirs && (!ours || strcmp(ours->name, theirs) != 0))
                fail_msg("%d is %s to libseccomp, %s to us", number, theirs, ours ? ours->name : "unknown");
            free(theirs);
        }
}

/* New headers bring new calls: this fails until somebody has decided about them. */
static void check_header_line(const char *line)
{
    char name[64], digits[16];
    const struct call *call;

    if (sscanf(line, "#define __NR_%63s %15[0-9]", name, digits) != 2)
        return;
    call = policy_call(ARCH_NATIVE, (int)strtol(digits, NULL, 10));
    if (!call || strcmp(call->name, name) != 0)
        fail_msg("%s (%s) of the system's headers is not in syscalls.def", name, digits);
}

static void every_call_of_the_headers_is_classified(void **state)
{
    static const char *const headers[] = { "/usr/include/x86_64-linux-gnu/asm/unistd_64.h",
                                           "/usr/include/aarch64-linux-gnu/asm/unistd_64.h",
                                           "/usr/include/asm/unistd_64.h" };
    FILE *header = NULL;
    char line[256];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(headers) && !header; i++)
        header = fopen(headers[i], "re");
    if (!header)
        skip();
    while (fgets(line, sizeof line, header))
        check_header_line(line);
    fclose(header);
}

/* ---- The programs ---- */

/* The kernel wants jumps within the program; we want no instruction that nothing reaches. */
static void check_program(const struct filter *filter)
{
    bool reached[BPF_MAXINSNS + 256] = { true };

    for (unsigned i = 0; i < filter->len; i++) {
        const struct sock_filter *at = &filter->code[i];
        unsigned class = BPF_CLASS(at->code);

        if (!reached[i])
            fail_msg("instruction %u is never reached", i);
        if (at->code == (BPF_JMP | BPF_JA)) {
            assert_in_range(i + at->k + 1, 0, filter->len - 1U);
            reached[i + 1 + at->k] = true;
        } else if (class == BPF_JMP) {
            reached[i + 1 + at->jt] = reached[i + 1 + at->jf] = true;
        } else if (class != BPF_RET) {
            reached[i + 1] = true;
        }
    }
    for (unsigned i = filter->len; i < ARRAY_LEN(reached); i++)
        assert_false(reached[i]);
}

static void programs_have_no_dead_code_and_end(void **state)
{
    (void)state;
    for (size_t a = 0; a < ARRAY_LEN(archs); a++)
        for (unsigned kind = 0; kind < FILTER_COUNT; kind++)
            check_program(&archs[a].filters[kind]);
}

static void an_unknown_instruction_kills(void **state)
{
    static const struct sock_filter strange[] = { BPF_STMT(BPF_LDX | BPF_W | BPF_IMM, 1),
                                                  BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
    static const struct sock_filter beyond[] = { BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                                          sizeof(struct seccomp_data)),
                                                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
    struct seccomp_data data = { 0 };

    (void)state;
    assert_int_equal(bpf_run(strange, ARRAY_LEN(strange), &data), SECCOMP_RET_KILL_PROCESS);
    assert_int_equal(bpf_run(beyond, ARRAY_LEN(beyond), &data), SECCOMP_RET_KILL_PROCESS);
    assert_int_equal(bpf_run(strange, 0, &data), SECCOMP_RET_KILL_PROCESS);
}

static void reasons_follow_the_arguments(void **state)
{
    struct seccomp_data sti = { SYS_ioctl, archs[ARCH_NATIVE].audit, 0, { 0, 0x100005412 } };
    struct seccomp_data node = { SYS_mknodat, archs[ARCH_NATIVE].audit, 0, { 0, 0, 0020666 } };
    struct seccomp_data future = { 1000, archs[ARCH_NATIVE].audit, 0, { 0 } };

    (void)state;
    assert_string_equal(filter_call_name(SYS_ioctl), "ioctl");
    assert_string_equal(filter_reason(FILTER_EXPLAIN, &sti), "types into the terminal in the name of its user");
    assert_string_equal(filter_reason(0, &node), "a device is a way to the hardware");
    assert_string_equal(filter_call_name(1000), "unknown");
    assert_string_equal(filter_reason(0, &future), "newer than the filter");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_is_answered_as_the_table_says),
        cmocka_unit_test(foreign_architectures_and_x32_are_killed),
        cmocka_unit_test(every_argument_is_compared_at_its_corners),
        cmocka_unit_test(every_kind_of_socket_is_decided),
        cmocka_unit_test(calls_written_out_are_answered_so),
        cmocka_unit_test(names_and_numbers_occur_once),
        cmocka_unit_test(every_refusal_has_a_reason),
        cmocka_unit_test(no_clause_is_unreachable),
        cmocka_unit_test(libseccomp_agrees_about_names_and_numbers),
        cmocka_unit_test(every_call_of_the_headers_is_classified),
        cmocka_unit_test(programs_have_no_dead_code_and_end),
        cmocka_unit_test(an_unknown_instruction_kills),
        cmocka_unit_test(reasons_follow_the_arguments),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
