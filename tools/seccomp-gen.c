/* Turns the policy (src/init/syscalls.def) into BPF programs and into the tables of its document.
 *
 *   seccomp-gen header x86_64|arm64    the programs as C arrays, for src/init/filters.c
 *   seccomp-gen doc docs/seccomp.md    that file with its tables brought up to date, on stdout
 *
 * Why not libseccomp.  Its rules are a set without order, and one rule may look at an argument
 * once.  So a filter that refuses by default cannot say "any ioctl but these six"; two stacked
 * filters could, at twice the cost of each call.  It also cannot compile for another architecture
 * calls that it has no name for, and it lacks the newest.  What is left to write is
 * the code below.  The tests use libseccomp to check names and numbers.
 *
 * A program is built from its end, so that the target of a jump is always there already.  A label
 * is the distance of an instruction from the end, counted from 1.
 *
 *   check the architecture       a foreign one kills: its numbers mean something else
 *   search the number            a balanced tree over ranges of numbers with the same fate
 *   test arguments, or return    clauses of one rule; equal tests in front are made once
 *
 * The order of the tree does not favour frequent calls: since Linux 5.11 a call that is allowed
 * whatever its arguments is looked up in a bitmap and the program does not run at all. */

#include "base/array.h"
#include "init/filters.h"
#include "init/policy.h"

#include <errno.h>
#include <linux/audit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NUMBERS = 1024, /* above all numbers of the table */
    RANGES_MAX = NUMBERS + 4,
    CLAUSES_MAX = 64, /* of one rule */
    JUMP_MAX = 250,   /* 255, less the far jumps that may come between */
};

/* Programs of x32 set this bit in the number, and are otherwise native. */
#define X32_BIT 0x40000000U

typedef unsigned label;

struct program {
    struct sock_filter code[BPF_MAXINSNS]; /* the last instruction first */
    unsigned len;
    unsigned kind;
    enum arch arch;
};

/* A run of numbers with the same fate: an action, or a rule about arguments. */
struct range {
    uint32_t first;
    uint32_t action;
    enum rule rule; /* if decided by clauses, otherwise RULE_ALLOW */
};

static void fail(const char *what, const char *name)
{
    fprintf(stderr, "seccomp-gen: %s%s\n", what, name);
    exit(1);
}

/* ---- Actions ---- */

/* An errno as the program says it: in explained programs a question, in init's a silent ENOSYS. */
static uint32_t refusal(const struct program *program, int error)
{
    if (program->kind & (FILTER_EXPLAIN | FILTER_INIT))
        return SECCOMP_RET_USER_NOTIF;
    return SECCOMP_RET_ERRNO | (uint32_t)error;
}

static uint32_t action_of(const struct program *program, enum rule rule, enum mark mark)
{
    if (mark == MARK_SILENT && rule != RULE_ALLOW && !(program->kind & FILTER_INIT))
        return SECCOMP_RET_ERRNO | (uint32_t)policy_errno(rule);
    if (rule == RULE_ALLOW)
        return mark == MARK_PATH && (program->kind & FILTER_EXPLAIN) ? SECCOMP_RET_USER_NOTIF
                                                                     : SECCOMP_RET_ALLOW;
    if (rule == RULE_FAKED)
        return SECCOMP_RET_ERRNO; /* with errno 0, which is success */
    return refusal(program, policy_errno(rule));
}

/* ---- Instructions ---- */

static label put(struct program *program, struct sock_filter instruction)
{
    if (program->len == ARRAY_LEN(program->code))
        fail("a program is too long", "");
    program->code[program->len] = instruction;
    return ++program->len;
}

static label put_return(struct program *program, uint32_t action)
{
    unsigned first = program->len > JUMP_MAX ? program->len - JUMP_MAX : 0;

    for (unsigned i = program->len; i > first; i--) {
        const struct sock_filter *old = &program->code[i - 1];

        if (old->code == (BPF_RET | BPF_K) && old->k == action)
            return i;
    }
    return put(program, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
}

/* A label that a conditional jump reaches, with its 8 bits, and means `target`. */
static label near(struct program *program, label target)
{
    unsigned distance = program->len - target;

    if (distance <= JUMP_MAX)
        return target;
    return put(program, (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, distance));
}

static label put_jump(struct program *program, unsigned op, uint32_t k, label yes, label no)
{
    label near_yes = near(program, yes), near_no = near(program, no);
    unsigned char to_yes = (unsigned char)(program->len - near_yes);
    unsigned char to_no = (unsigned char)(program->len - near_no);

    return put(program, (struct sock_filter)BPF_JUMP((unsigned short)(BPF_JMP | op | BPF_K), k, to_yes, to_no));
}

/* Falls through to the instruction that was put last. */
static label put_load(struct program *program, size_t offset)
{
    return put(program, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

/* ---- Arguments ---- */

static bool same_word(const struct test *a, const struct test *b)
{
    return a->arg == b->arg && a->high == b->high && a->mask == b->mask;
}

static bool same_test(const struct test *a, const struct test *b)
{
    return a->op == b->op && same_word(a, b) && a->value == b->value;
}

static bool is_last_test(const struct clause *clause, unsigned depth)
{
    return depth + 1 == TESTS_MAX || clause->tests[depth + 1].op == TEST_NONE;
}

/* Little-endian, like all architectures of the table: the low half comes first. */
static label put_word(struct program *program, const struct test *test)
{
    size_t offset = offsetof(struct seccomp_data, args) + sizeof(uint64_t) * test->arg + (test->high ? 4 : 0);

    if (test->mask != UINT32_MAX)
        put(program, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, test->mask));
    return put_load(program, offset);
}

static label put_test(struct program *program, const struct test *test, label yes, label no)
{
    if (test->op == TEST_AT_MOST)
        return put_jump(program, BPF_JGT, test->value, no, yes);
    return put_jump(program, BPF_JEQ, test->value, yes, no);
}

/* Where a failed test goes on: with the word still loaded if the next one looks at the same. */
struct next {
    label load, loaded;
    const struct test *test; /* NULL: there is no next test */
};

static size_t group_start(const struct clause *const *list, size_t count, unsigned depth)
{
    size_t start = count - 1;

    while (start > 0 && same_test(&list[start - 1]->tests[depth], &list[count - 1]->tests[depth]))
        start--;
    return start;
}

/* Whether anything enters a group by its load: the start of the list, a group before it that
 * looked at another word, or at more words. */
static bool load_is_needed(const struct clause *const *list, size_t start, unsigned depth)
{
    return start == 0 || !is_last_test(list[start - 1], depth) ||
           !same_word(&list[start - 1]->tests[depth], &list[start]->tests[depth]);
}

static label put_clauses(struct program *program, const struct clause *const *list, size_t count,
                         unsigned depth, label otherwise);

/* What happens once the test at `depth` of this group holds. */
static label put_group(struct program *program, const struct clause *const *list, size_t count, unsigned depth,
                       label otherwise)
{
    if (is_last_test(list[0], depth))
        return put_return(program, action_of(program, list[0]->verdict, MARK_PLAIN));
    return put_clauses(program, list, count, depth + 1, otherwise);
}

/* The clauses `list`, which agree in the tests above `depth`; `otherwise` if none of them holds. */
static label put_clauses(struct program *program, const struct clause *const *list, size_t count,
                         unsigned depth, label otherwise)
{
    struct next next;

    if (list[count - 1]->tests[depth].op == TEST_NONE)
        otherwise = put_return(program, action_of(program, list[--count]->verdict, MARK_PLAIN));
    next = (struct next){ .load = otherwise };
    while (count > 0) {
        size_t start = group_start(list, count, depth);
        const struct test *test = &list[start]->tests[depth];
        label yes = put_group(program, list + start, count - start, depth, next.load);
        bool keep = next.test && same_word(test, next.test);

        next.loaded = put_test(program, test, yes, keep ? next.loaded : next.load);
        next.test = test;
        if (load_is_needed(list, start, depth))
            next.load = put_word(program, test);
        count = start;
    }
    return next.load;
}

static label put_rule(struct program *program, enum rule rule)
{
    const struct clause *list[CLAUSES_MAX];
    size_t count = 0;

    for (size_t i = 0; i < clauses_len && count < CLAUSES_MAX; i++) {
        if (clauses[i].rule != rule || !policy_clause_holds_for(&clauses[i], program->kind))
            continue;
        list[count++] = &clauses[i];
        if (clauses[i].tests[0].op == TEST_NONE)
            return put_clauses(program, list, count, 0, 0);
    }
    fail("a rule lacks its last clause", "");
    return 0;
}

/* ---- Numbers ---- */

static struct range fate_of(const struct program *program, uint32_t number)
{
    const struct call *call = policy_call(program->arch, (int)number);
    enum rule rule = call ? policy_rule(call, program->kind) : RULE_ENOSYS;

    if (rule >= RULE_CLONE)
        return (struct range){ number, 0, rule };
    return (struct range){ number, action_of(program, rule, call ? call->mark : MARK_PLAIN), RULE_ALLOW };
}

static size_t add_range(struct range *ranges, size_t count, struct range next)
{
    if (count > 0 && next.action == ranges[count - 1].action && next.rule == ranges[count - 1].rule)
        return count;
    ranges[count] = next;
    return count + 1;
}

/* The last number, -1, is what a tracer sets to skip a call (strace's fault injection does): it
 * has to fail, but may neither kill nor wait for a supervisor. */
static size_t list_ranges(const struct program *program, struct range *ranges)
{
    size_t count = 0;

    for (uint32_t number = 0; number < NUMBERS; number++)
        count = add_range(ranges, count, fate_of(program, number));
    if (program->arch == ARCH_X86_64)
        count = add_range(ranges, count, (struct range){ X32_BIT, SECCOMP_RET_KILL_PROCESS, RULE_ALLOW });
    return add_range(ranges, count, (struct range){ UINT32_MAX, SECCOMP_RET_ERRNO | ENOSYS, RULE_ALLOW });
}

static label put_tree(struct program *program, const struct range *ranges, size_t count)
{
    size_t half = count / 2;
    label above, below;

    if (count == 1 && ranges->rule != RULE_ALLOW)
        return put_rule(program, ranges->rule);
    if (count == 1)
        return put_return(program, ranges->action);
    below = put_tree(program, ranges, half);
    above = put_tree(program, ranges + half, count - half);
    return put_jump(program, BPF_JGE, ranges[half].first, above, below);
}

static void build(struct program *program)
{
    static const uint32_t audit[ARCH_COUNT] = { AUDIT_ARCH_X86_64, AUDIT_ARCH_AARCH64 };
    struct range ranges[RANGES_MAX];
    label native;

    put_tree(program, ranges, list_ranges(program, ranges));
    native = put_load(program, offsetof(struct seccomp_data, nr));
    put_jump(program, BPF_JEQ, audit[program->arch], native, put_return(program, SECCOMP_RET_KILL_PROCESS));
    put_load(program, offsetof(struct seccomp_data, arch));
}

/* ---- Header ---- */

static void print_program(const struct program *program)
{
    printf("\nstatic const struct sock_filter filter_%u[] = {\n", program->kind);
    for (unsigned i = program->len; i > 0; i--) {
        const struct sock_filter *at = &program->code[i - 1];

        printf("    { 0x%02x, %u, %u, 0x%08x },\n", at->code, at->jt, at->jf, at->k);
    }
    printf("};\n");
}

static int print_header(const char *arch)
{
    static struct program program;

    if (strcmp(arch, "x86_64") != 0 && strcmp(arch, "arm64") != 0)
        fail("no such architecture: ", arch);
    printf("/* Made by tools/seccomp-gen.c from src/init/syscalls.def for %s. */\n", arch);
    for (unsigned kind = 0; kind < FILTER_COUNT; kind++) {
        program.len = 0;
        program.kind = kind;
        program.arch = strcmp(arch, "arm64") == 0 ? ARCH_ARM64 : ARCH_X86_64;
        build(&program);
        print_program(&program);
    }
    return 0;
}

/* ---- Document ---- */

/* Calls in a row of the table that share fate and reason share a row of the document. */
static void print_refused(void)
{
    printf("| call | answer | why |\n| --- | --- | --- |\n");
    for (size_t i = 0; i < calls_len; i++) {
        const struct call *first = &calls[i];

        if (policy_errno(first->rule) == 0)
            continue;
        printf("| `%s`", first->name);
        for (;
             i + 1 < calls_len && calls[i + 1].rule == first->rule && strcmp(calls[i + 1].why, first->why) == 0;
             i++)
            printf(", `%s`", calls[i + 1].name);
        printf(" | %s | %s |\n", first->rule_name, first->why);
    }
}

static const char *name_of_rule(enum rule rule)
{
    for (size_t i = 0; i < calls_len; i++)
        if (calls[i].rule == rule)
            return calls[i].name;
    return "?";
}

/* A condition is C, and its `|` would end a cell. */
static void print_code(const char *code)
{
    printf("`");
    for (; *code; code++)
        printf("%s%c", *code == '|' ? "\\" : "", *code);
    printf("`");
}

static void print_clause(const struct clause *clause, const char *who)
{
    printf("| `%s` | %s | ", name_of_rule(clause->rule), who);
    print_code(clause->condition);
    printf(" | %s | %s |\n", clause->verdict_name, clause->why);
}

static void print_arguments(void)
{
    static const char *const who[] = {
        [WHO_EVERYONE] = "all", [WHO_PAYLOAD] = "commands",   [WHO_RELAXED] = "all but strict",
        [WHO_INIT] = "init",    [WHO_FAKEROOT] = "fake root",
    };

    printf("| call | filters | if | answer | why |\n| --- | --- | --- | --- | --- |\n");
    for (size_t i = 0; i < clauses_len; i++)
        print_clause(&clauses[i], who[clauses[i].who]);
}

static void print_names(enum mark mark)
{
    const char *separator = "";

    for (size_t i = 0; i < calls_len; i++) {
        if (calls[i].mark != mark)
            continue;
        printf("%s`%s`", separator, calls[i].name);
        separator = ", ";
    }
    printf(".\n");
}

static void print_strict(void)
{
    printf("EPERM: ");
    print_names(MARK_STRICT_EPERM);
    printf("ENOSYS: ");
    print_names(MARK_STRICT_ENOSYS);
}

static void print_faked(void)
{
    print_names(MARK_FAKED);
}

static void print_paths(void)
{
    print_names(MARK_PATH);
}

static void print_init(void)
{
    print_names(MARK_INIT);
}

static const struct table {
    const char *marker;
    void (*print)(void);
} tables[] = {
    { "<!-- table: refused -->\n", print_refused }, { "<!-- table: arguments -->\n", print_arguments },
    { "<!-- table: strict -->\n", print_strict },   { "<!-- table: faked -->\n", print_faked },
    { "<!-- table: paths -->\n", print_paths },     { "<!-- table: init -->\n", print_init },
};

#define END_MARKER "<!-- end -->\n"

static const struct table *table_of(const char *line)
{
    for (size_t i = 0; i < ARRAY_LEN(tables); i++)
        if (strcmp(line, tables[i].marker) == 0)
            return &tables[i];
    return NULL;
}

static int print_doc(const char *path)
{
    FILE *doc = fopen(path, "re");
    bool old = false; /* in a table, whose lines are made anew */
    char line[4096];

    if (!doc)
        fail("cannot open ", path);
    while (fgets(line, sizeof line, doc)) {
        const struct table *table = table_of(line);

        old = old && strcmp(line, END_MARKER) != 0;
        if (!old)
            fputs(line, stdout);
        if (table)
            table->print();
        old = old || table;
    }
    fclose(doc);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "header") == 0)
        return print_header(argv[2]);
    if (argc == 3 && strcmp(argv[1], "doc") == 0)
        return print_doc(argv[2]);
    fprintf(stderr, "usage: seccomp-gen header x86_64|arm64\n       seccomp-gen doc FILE\n");
    return 2;
}
