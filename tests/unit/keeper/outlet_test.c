/* What the keeper makes of what a gateway says: the notes come from here. */

#include "keeper/outlet.h"
#include "keeper/reel.h"

#include "base/array.h"
#include "base/error.h"
#include "base/file.h"
#include "base/own.h"
#include "base/text.h"
#include "box/network.h"
#include "gateway/rules.h"
#include "tests/support/unit.h"
#include "tests/support/unit_scratch.h"
#include "trace/trace.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TABLE = 1024, LINES_EACH = 20000 };

struct world {
    struct unit_scratch *scratch;
    struct loop loop;
    struct network network;
    struct rules rules;
    struct trace trace;
    struct outlet outlet;
    int gateway; /* its end of the channel */
};

static int setup(void **state)
{
    static const struct reel nothing = { .record = -1, .tape = -1 };
    struct world *world = memory_zero(sizeof *world);
    struct error err;
    int ends[2];

    *state = world;
    if (unit_scratch_setup((void **)&world->scratch) < 0)
        return -1;
    world->network = NETWORK_CLOSED;
    world->network.sockets[NETWORK_UDP] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    world->outlet = OUTLET_NONE;
    assert_int_equal(trace_open(world->scratch->dir, &world->trace, &err), 0);
    assert_int_equal(outlet_begin(&world->outlet, &world->loop,
                                  &(struct way_out){ .network = &world->network,
                                                     .rules = &world->rules,
                                                     .reel = &nothing,
                                                     .trace = &world->trace,
                                                     .dir = world->scratch->dir },
                                  &err),
                     0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    world->outlet.channel.fd = ends[0];
    world->gateway = ends[1];
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;

    outlet_end(&world->outlet);
    requests_free(&world->outlet.requests);
    trace_close(&world->trace);
    loop_free(&world->loop);
    close(world->network.sockets[NETWORK_UDP]);
    close(world->gateway);
    unit_scratch_teardown((void **)&world->scratch);
    free(world);
    return 0;
}

/* Whether the gateway may let it through. */
static bool ask(struct world *world, const char *host, bool allowed)
{
    struct gateway_note note = { .tag = 7, .allowed = allowed, .protocol = GATEWAY_HTTP, .port = 80 };
    struct gateway_noted noted = { 0 };

    snprintf(note.host, sizeof note.host, "%s", host);
    snprintf(note.why, sizeof note.why, "because");
    assert_int_equal(send(world->gateway, &note, sizeof note, 0), sizeof note);
    world->outlet.channel.ready(world->outlet.channel.owner, POLLIN);
    return recv(world->gateway, &noted, sizeof noted, 0) == (ssize_t)sizeof noted && noted.tag == 7;
}

static bool ask_number(struct world *world, unsigned number)
{
    autofree char *host = text_format("h%u.example", number);

    return ask(world, host, true);
}

static size_t lines(const struct world *world, const char *part)
{
    autofree char *text = file_text(world->scratch->dir, TRACE_FILE, 64 << 20);
    size_t count = 0;

    assert_non_null(text);
    for (const char *at = text; (at = strstr(at, part)); at += strlen(part))
        count++;
    return count;
}

/* How often the list says that it was asked for; 0: it is not in it. */
static uint64_t listed(const struct world *world, const char *host)
{
    for (size_t i = 0; i < world->outlet.requests.len; i++)
        if (strcmp(world->outlet.requests.items[i].host, host) == 0)
            return world->outlet.requests.items[i].count;
    return 0;
}

static void requests_beyond_the_list_are_recorded_and_let_through(void **state)
{
    struct world *world = *state;

    for (unsigned i = 0; i < 2 * TABLE; i++)
        assert_true(ask_number(world, i));
    assert_int_equal(lines(world, "\"kind\":\"request\""), 2 * TABLE);
    assert_int_equal(lines(world, "\"h2047.example\""), 1);
    assert_int_equal(world->outlet.requests.len, TABLE);
    assert_int_equal(world->outlet.requests.others, TABLE);
}

static void what_was_asked_for_least_and_longest_ago_is_forgotten(void **state)
{
    struct world *world = *state;

    for (unsigned i = 0; i < TABLE; i++)
        assert_true(ask_number(world, i));
    assert_true(ask_number(world, 0)); /* now twice */
    assert_true(ask(world, "new.example", false));
    assert_int_equal(listed(world, "h0.example"), 2);
    assert_int_equal(listed(world, "new.example"), 1);
    assert_int_equal(listed(world, "h1.example"), 0);
    assert_int_equal(listed(world, "h2.example"), 1);
    for (unsigned i = TABLE; i < 3 * TABLE; i++)
        assert_true(ask_number(world, i));
    assert_int_equal(listed(world, "h0.example"), 2);
    assert_int_equal(listed(world, "new.example"), 0);
    assert_int_equal(world->outlet.requests.others, 2 * TABLE + 1);
}

static void say_failed(struct world *world, bool allowed)
{
    struct gateway_note note = { .tag = 7, .saying = GATEWAY_FAILED, .allowed = allowed, .port = 80 };

    snprintf(note.host, sizeof note.host, "h0.example");
    snprintf(note.why, sizeof note.why, "because");
    assert_int_equal(send(world->gateway, &note, sizeof note, 0), sizeof note);
    world->outlet.channel.ready(world->outlet.channel.owner, POLLIN);
}

static void a_failure_is_a_line_of_its_own_and_no_request_more(void **state)
{
    struct world *world = *state;
    const struct requests *requests = &world->outlet.requests;

    assert_true(ask_number(world, 0));
    say_failed(world, true);
    say_failed(world, false); /* what was not allowed cannot fail */
    assert_int_equal(requests->len, 2);
    assert_int_equal(requests->all, 1);
    assert_string_equal(request_verdict(&requests->items[0]), "allow");
    assert_string_equal(request_verdict(&requests->items[1]), "fail");
    assert_int_equal(requests->items[1].count, 1);
    assert_int_equal(lines(world, "\"verdict\":\"fail\""), 1);
}

/* Nobody can fill a disk by it, and nobody is refused for it. */
static void the_trace_grows_by_a_line_in_a_second_in_the_end(void **state)
{
    struct world *world = *state;
    enum { MORE = 300 };
    size_t before;

    world->outlet.lines = LINES_EACH;
    assert_true(ask_number(world, 0));
    before = lines(world, "\"kind\":\"request\"");
    assert_int_equal(before, 1);
    for (unsigned i = 1; i <= MORE; i++)
        assert_true(ask_number(world, i));
    assert_in_range(lines(world, "\"kind\":\"request\""), before, before + 5);
    world->outlet.line_at = 0; /* the second is over */
    world->outlet.unsaid = MORE;
    assert_true(ask(world, "last.example", true));
    assert_int_equal(lines(world, "\"left_out\":300"), 1);
    assert_int_equal(lines(world, "\"last.example\""), 1);
    assert_int_equal(world->outlet.unsaid, 0);
}

static void what_cannot_be_written_down_is_not_let_through(void **state)
{
    struct world *world = *state;

    assert_true(ask(world, "before.example", true));
    close(world->trace.fd);
    world->trace.fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    assert_false(ask(world, "full.example", true));
}

/* Those of one message; `out` is what came back, which may be nothing. */
static size_t ask_several(struct world *world, const struct gateway_note *notes, size_t count,
                          struct gateway_noted out[GATEWAY_NOTES])
{
    size_t size = count * sizeof *notes;

    assert_int_equal(send(world->gateway, notes, size, 0), size);
    world->outlet.channel.ready(world->outlet.channel.owner, POLLIN);
    ssize_t got = recv(world->gateway, out, GATEWAY_NOTES * sizeof *out, MSG_DONTWAIT);

    return got > 0 ? (size_t)got / sizeof *out : 0;
}

static void several_at_once_are_all_written_down_before_one_answer(void **state)
{
    struct world *world = *state;
    static struct gateway_note notes[GATEWAY_NOTES];
    struct gateway_noted out[GATEWAY_NOTES];

    for (size_t i = 0; i < GATEWAY_NOTES; i++) {
        notes[i] = (struct gateway_note){ .tag = 100 + i, .allowed = true, .port = 80, .spent.requests = 1 };
        snprintf(notes[i].host, sizeof notes[i].host, "s%zu.example", i);
    }
    notes[3].protocol = GATEWAY_PROTOCOLS; /* no such */
    notes[5].tag = 0;                      /* only what was spent */
    assert_int_equal(ask_several(world, notes, GATEWAY_NOTES, out), GATEWAY_NOTES - 2);
    for (size_t i = 0, at = 0; i < GATEWAY_NOTES; i++)
        if (i != 3 && i != 5)
            assert_int_equal(out[at++].tag, 100 + i);
    assert_int_equal(lines(world, "\"kind\":\"request\""), GATEWAY_NOTES - 2);
    assert_int_equal(world->outlet.requests.spent.requests, GATEWAY_NOTES - 1);
    assert_int_equal(listed(world, "s3.example"), 0);
    close(world->trace.fd);
    world->trace.fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    assert_int_equal(ask_several(world, notes, GATEWAY_NOTES, out), 0);
}

static void a_message_of_another_size_ends_the_gateway(void **state)
{
    struct world *world = *state;
    static char bytes[(GATEWAY_NOTES + 1) * sizeof(struct gateway_note)];
    static const size_t sizes[] = { sizeof bytes, sizeof(struct gateway_note) + 1, 1 };

    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        struct world *other = NULL;

        if (i)
            assert_int_equal(setup((void **)&other), 0);
        struct world *here = i ? other : world;

        assert_int_equal(send(here->gateway, bytes, sizes[i], 0), sizes[i]);
        here->outlet.channel.ready(here->outlet.channel.owner, POLLIN);
        assert_int_equal(here->outlet.channel.fd, -1);
        assert_true(here->outlet.died);
        if (i)
            assert_int_equal(teardown((void **)&other), 0);
    }
}

int main(void)
{
#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        IN_WORLD(requests_beyond_the_list_are_recorded_and_let_through),
        IN_WORLD(a_failure_is_a_line_of_its_own_and_no_request_more),
        IN_WORLD(what_was_asked_for_least_and_longest_ago_is_forgotten),
        IN_WORLD(the_trace_grows_by_a_line_in_a_second_in_the_end),
        IN_WORLD(what_cannot_be_written_down_is_not_let_through),
        IN_WORLD(several_at_once_are_all_written_down_before_one_answer),
        IN_WORLD(a_message_of_another_size_ends_the_gateway),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
