#include "keeper/control.h"

#include "init/wire.h"
#include "keeper/loop.h"
#include "keeper/words.h"
#include "tests/support/unit.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- messages --- */

static void send_raw(int fd, const void *bytes, size_t size)
{
    assert_int_equal(send(fd, bytes, size, 0), (ssize_t)size);
}

static void a_message_is_whole_of_our_version_and_terminated(void **state)
{
    struct control sent = CONTROL(CONTROL_EXEC), got;
    int pair[2], fds[PROTOCOL_FDS_MAX];
    struct error err;
    size_t count;

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    memset(sent.user, 'x', sizeof sent.user);
    memset(sent.error.text, 'y', sizeof sent.error.text);
    assert_int_equal(control_send(pair[0], &sent, &pair[0], 1), 0);
    assert_int_equal(control_receive(pair[1], &got, fds, &count, &err), WIRE_MESSAGE);
    assert_int_equal(count, 1);
    assert_int_equal(strlen(got.user), sizeof got.user - 1);
    assert_int_equal(strlen(got.error.text), sizeof got.error.text - 1);
    close(fds[0]);

    sent.version = CONTROL_VERSION + 1;
    assert_int_equal(control_send(pair[0], &sent, &pair[0], 1), 0);
    assert_int_equal(control_receive(pair[1], &got, fds, &count, &err), -1);
    assert_int_equal(err.kind, ERROR_UNSUPPORTED);
    assert_contains(err.text, "another version");
    assert_int_equal(count, 0);

    send_raw(pair[0], &sent, sizeof sent - 1);
    assert_int_equal(control_receive(pair[1], &got, fds, &count, &err), -1);
    assert_contains(err.text, "wrong size");
    close(pair[0]);
    assert_int_equal(control_receive(pair[1], &got, fds, &count, &err), WIRE_CLOSED);
    close(pair[1]);
}

static void nothing_of_the_senders_memory_goes_along(void **state)
{
    struct control sent, got;
    int pair[2], fds[PROTOCOL_FDS_MAX];
    struct error err;
    size_t count;

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    memset(&sent, 'x', sizeof sent);
    sent.version = CONTROL_VERSION;
    snprintf(sent.user, sizeof sent.user, "root");
    error_set(&sent.error, ERROR_REFUSED, "no");
    assert_int_equal(control_send(pair[0], &sent, NULL, 0), 0);
    assert_int_equal(control_receive(pair[1], &got, fds, &count, &err), WIRE_MESSAGE);
    assert_string_equal(got.error.text, "no");
    for (size_t i = strlen("no"); i < sizeof got.error.text; i++)
        assert_int_equal(got.error.text[i], 0);
    for (size_t i = strlen("root"); i < sizeof got.user; i++)
        assert_int_equal(got.user[i], 0);
    close(pair[0]);
    close(pair[1]);
}

/* A path of any length: names of sockets have 108 bytes. */
static void a_socket_is_found_in_a_directory_however_deep(void **state)
{
    char top[] = "/tmp/control-XXXXXX", name[120];
    struct error err;

    (void)state;
    assert_non_null(mkdtemp(top));
    memset(name, 'd', sizeof name - 1);
    name[sizeof name - 1] = '\0';

    int above = open(top, O_RDONLY | O_DIRECTORY);

    assert_int_equal(mkdirat(above, name, 0700), 0);

    int dir = openat(above, name, O_RDONLY | O_DIRECTORY);

    assert_int_equal(control_connect(dir, &err), -1);
    assert_int_equal(err.kind, ERROR_MISSING);

    int door = control_listen(dir, &err);

    assert_true(door >= 0);

    int fd = control_connect(dir, &err), inside = accept(door, NULL, NULL);

    assert_true(fd >= 0 && inside >= 0);
    assert_int_equal(control_check_peer(inside, &err), 0);
    close(fd);
    close(inside);
    close(door);
    assert_int_equal(control_connect(dir, &err), -1);
    assert_int_equal(err.kind, ERROR_MISSING); /* its file is still there, and nobody behind it */
    door = control_listen(dir, &err);
    assert_true(door >= 0); /* what was left is replaced */
    close(door);
    assert_int_equal(unlinkat(dir, CONTROL_SOCKET, 0), 0);
    close(dir);
    assert_int_equal(unlinkat(above, name, AT_REMOVEDIR), 0);
    close(above);
    assert_int_equal(rmdir(top), 0);
}

/* --- words --- */

static void words_come_back_as_they_were(void **state)
{
    static const char *const argv[] = { "a b", "", "\xff\n", NULL }, *const envp[] = { "K=v", "E=", NULL };
    autowords struct words got = WORDS_NONE;
    uint32_t counts[2];
    struct error err;
    int fd = words_write("/d", argv, envp, counts, &err);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(words_read(fd, counts, 1000, &got, &err), 0);
    assert_string_equal(got.cwd, "/d");
    assert_int_equal(got.argv.len, 3);
    assert_string_equal(got.argv.items[2], "\xff\n");
    assert_int_equal(got.envp.len, 2);
    assert_string_equal(got.envp.items[1], "E=");
    assert_null(got.envp.items[2]);
    close(fd);
}

static void words_that_are_not_whole_are_refused(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
        uint32_t counts[2];
    } wrong[] = {
        { "", 0, { 1, 0 } },       { "/", 1, { 1, 0 } },          { "/\0a", 3, { 1, 0 } },
        { "/\0a\0", 4, { 2, 0 } }, { "/\0a\0", 4, { 1, 1 } },     { "/\0a\0b\0", 6, { 1, 0 } },
        { "/\0", 2, { 0, 0 } },    { "/\0a\0", 4, { ~0U, ~0U } }, { "/\0aaaaaaaaaaaaaaa\0", 18, { 1, 0 } },
    };

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        autowords struct words got = WORDS_NONE;
        struct error err = { 0 };
        int fd = memfd_create("words", 0);

        assert_int_equal(write(fd, wrong[i].bytes, wrong[i].len), (ssize_t)wrong[i].len);
        assert_int_equal(words_read(fd, wrong[i].counts, 16, &got, &err), -1);
        assert_int_equal(err.kind, ERROR_INVALID);
        close(fd);
    }

    int pipes[2];
    struct error err = { 0 };
    autowords struct words got = WORDS_NONE;

    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(words_read(pipes[0], (uint32_t[]){ 1, 0 }, 16, &got, &err), -1); /* it would wait */
    close(pipes[0]);
    close(pipes[1]);
}

/* --- the loop --- */

struct told {
    struct loop *loop;
    struct loop_source *victim, *fresh;
    int times;
};

static void tell(void *owner, short revents)
{
    struct told *told = owner;

    (void)revents;
    told->times++;
    if (told->victim)
        loop_remove(told->loop, told->victim);
    if (told->fresh)
        loop_add(told->loop, told->fresh);
    told->fresh = NULL;
}

static void who_is_removed_is_not_told_any_more(void **state)
{
    autoloop struct loop loop = { 0 };
    int null = open("/dev/null", O_RDWR);
    struct told first = { .loop = &loop }, second = { 0 }, third = { 0 };
    struct loop_source a = { null, POLLIN, tell, &first }, b = { null, POLLIN, tell, &second },
                       c = { null, POLLIN, tell, &third };
    struct error err;

    (void)state;
    first.victim = &b;
    first.fresh = &c;
    loop_add(&loop, &a);
    loop_add(&loop, &b);
    assert_int_equal(loop_turn(&loop, 0, &err), 2);
    assert_int_equal(first.times + second.times * 10 + third.times * 100, 1);
    assert_int_equal(loop_turn(&loop, 0, &err), 2);
    assert_int_equal(first.times + second.times * 10 + third.times * 100, 102);
    loop_remove(&loop, &a);
    loop_remove(&loop, &a); /* once is as good as twice */
    assert_int_equal(loop_turn(&loop, 0, &err), 1);
    assert_int_equal(first.times + second.times * 10 + third.times * 100, 202);
    close(null);
}

/* Of 2,000 sources that rest none is given to the kernel, which takes no more than there may be descriptors. */
static void who_rests_takes_no_room(void **state)
{
    enum { RESTING = 2000, DESCRIPTORS = 64 };
    struct rlimit before, few;
    struct loop_source *resting = calloc(RESTING, sizeof *resting);
    struct told told = { 0 };
    autoloop struct loop loop = { 0 };
    struct error err;
    int null = open("/dev/null", O_RDONLY);
    struct loop_source last = { null, POLLIN, tell, &told };

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = (struct rlimit){ DESCRIPTORS, before.rlim_max };
    for (size_t i = 0; i < RESTING; i++) {
        resting[i] = (struct loop_source){ -1, POLLIN, tell, &told };
        loop_add(&loop, &resting[i]);
    }
    loop_add(&loop, &last);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    assert_int_equal(loop_turn(&loop, 0, &err), 1);
    assert_int_equal(told.times, 1);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    free(resting);
    close(null);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_is_whole_of_our_version_and_terminated),
        cmocka_unit_test(a_socket_is_found_in_a_directory_however_deep),
        cmocka_unit_test(words_come_back_as_they_were),
        cmocka_unit_test(words_that_are_not_whole_are_refused),
        cmocka_unit_test(who_is_removed_is_not_told_any_more),
        cmocka_unit_test(nothing_of_the_senders_memory_goes_along),
        cmocka_unit_test(who_rests_takes_no_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
