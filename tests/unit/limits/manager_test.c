/* The call that asks the user's service manager for a scope, and what its answers lead to.  A stand-in
 * listens on a socket: whether a real one obeys is seen where there is one (make check-guest). */

#include "base/array.h"
#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "limits/manager.h"
#include "tests/support/unit.h"
#include "tests/support/unit_scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static struct limits some_limits(void)
{
    struct limits limits = LIMITS_NONE;

    limits.items[LIMIT_MEMORY] = (struct limit_choice){ 1 << 30, WAY_MANAGER };
    limits.items[LIMIT_PROCESSES] = (struct limit_choice){ 99, WAY_MANAGER };
    limits.items[LIMIT_CPUS] = (struct limit_choice){ 1500, WAY_AFFINITY };
    return limits;
}

static uint32_t u32_at(const struct text *text, size_t at)
{
    uint32_t value;

    assert_true(at + sizeof value <= text->len);
    memcpy(&value, text->data + at, sizeof value);
    return value;
}

/* A number stands, aligned to eight, behind its name, the signature "t" and a zero. */
static uint64_t property(const struct text *call, const char *name)
{
    const char *at = memmem(call->data, call->len, name, strlen(name) + 1);
    uint64_t value;
    size_t offset;

    assert_non_null(at);
    at += strlen(name) + 1;
    assert_memory_equal(at, "\1t", 3);
    offset = ((size_t)(at + 3 - call->data) + 7) & ~(size_t)7;
    assert_true(offset + sizeof value <= call->len);
    memcpy(&value, call->data + offset, sizeof value);
    return value;
}

static void the_call_has_the_lengths_and_numbers_that_it_says(void **state)
{
    autotext struct text call = TEXT_NONE;
    struct limits limits = some_limits();

    (void)state;
    manager_call(&limits, "abc", 4242, &call);
    assert_memory_equal(call.data, "l\1\0\1", 4);

    size_t fields = (u32_at(&call, 12) + 7U) & ~7U;

    assert_int_equal(16 + fields + u32_at(&call, 4), call.len);
    assert_int_equal(u32_at(&call, 16 + fields), strlen("cove-abc.scope"));
    assert_int_equal(property(&call, "MemoryMax"), 1 << 30);
    assert_int_equal(property(&call, "MemorySwapMax"), 0);
    assert_int_equal(property(&call, "TasksMax"), 100); /* PID 1 is one of them */
    assert_null(memmem(call.data, call.len, "CPUQuota", 8));
    assert_memory_equal(call.data + call.len - 4, "\0\0\0\0", 4); /* no units beside it */
}

/* One connection, answered with `answer` after the words of greeting. */
static pid_t listen_at(const char *path, const void *answer, size_t len)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    pid_t pid;

    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 1), 0);
    pid = fork();
    if (pid == 0) {
        int peer = accept(fd, NULL, NULL);
        char bytes[4096];

        (void)!read(peer, bytes, sizeof bytes);
        (void)!write(peer, "OK 0123\r\n", 9);
        (void)!read(peer, bytes, sizeof bytes);
        (void)!write(peer, answer, len);
        shutdown(peer, SHUT_WR);
        while (read(peer, bytes, sizeof bytes) > 0)
            ;
        _exit(0);
    }
    close(fd);
    return pid;
}

static void an_answer_that_says_no_is_passed_on(void **state)
{
    /* a signal first, then a failure whose body is "no room" */
    static const char said[] = "l\4\1\1\0\0\0\0\1\0\0\0\0\0\0\0"
                               "l\3\1\1\14\0\0\0\2\0\0\0\0\0\0\0\7\0\0\0no room";
    static const struct {
        const char *bytes;
        size_t len;
        const char *want;
    } cases[] = {
        { said, sizeof said, "no room" },
        { said, 16, "answer" }, /* it hangs up */
        { "B\3\1\1\14\0\0\0\2\0\0\0\0\0\0\0", 16, "makes no sense" },
        { "l\3\1\1\377\377\377\377\2\0\0\0\0\0\0\0", 16, "makes no sense" },
        { "l\3\1\1\0\0\0\0\2\0\0\0\377\377\377\377", 16, "makes no sense" },
        { "l\3\1\1\10\0\0\0\2\0\0\0\0\0\0\0\377\377\377\377ABCD", 24, "says no" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        autofree char *name = text_format("socket%zu", i);
        struct limits limits = some_limits();
        struct cgroup cgroup = CGROUP_INIT;
        struct error err;
        pid_t pid;

        limits.place.dirs[0] = text_copy(unit_scratch_path(*state, name));
        pid = listen_at(limits.place.dirs[0], cases[i].bytes, cases[i].len);
        assert_int_equal(manager_scope(&limits, "abc", getpid(), &cgroup, &err), -1);
        assert_contains(err.text, cases[i].want);
        waitpid(pid, NULL, 0);
        limits_free(&limits);
    }
}

static void nobody_there_is_an_error(void **state)
{
    struct limits limits = some_limits();
    struct cgroup cgroup = CGROUP_INIT;
    struct error err;

    limits.place.dirs[0] = text_copy(unit_scratch_path(*state, "none"));
    assert_int_equal(manager_scope(&limits, "abc", getpid(), &cgroup, &err), -1);
    assert_contains(err.text, "service manager");
    limits_free(&limits);
}

/* Who can make somebody else listen there is root, and it is the only one who can try. */
static void a_manager_of_somebody_else_is_refused(void **state)
{
    enum { SOMEBODY = 54321 };
    struct limits limits = some_limits();
    struct cgroup cgroup = CGROUP_INIT;
    struct error err;
    pid_t pid;

    if (geteuid() != 0)
        skip();
    limits.place.dirs[0] = text_copy(unit_scratch_path(*state, "theirs"));
    assert_int_equal(fchmod(((struct unit_scratch *)*state)->dir, 0777), 0);
    assert_int_equal(seteuid(SOMEBODY), 0);
    pid = listen_at(limits.place.dirs[0], "l\2\1\1\0\0\0\0\1\0\0\0\0\0\0\0", 16);
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(manager_scope(&limits, "abc", getpid(), &cgroup, &err), -1);
    assert_contains(err.text, "another user's");
    waitpid(pid, NULL, 0);
    limits_free(&limits);
}

#define ON_SCRATCH(test) cmocka_unit_test_setup_teardown(test, unit_scratch_setup, unit_scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_call_has_the_lengths_and_numbers_that_it_says),
        ON_SCRATCH(an_answer_that_says_no_is_passed_on),
        ON_SCRATCH(nobody_there_is_an_error),
        ON_SCRATCH(a_manager_of_somebody_else_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
