/* All that a client of HTTP/2 says, in pieces: whatever it is, only requests for the host that was dialled are
 * noted as allowed, with the method that the rule has; nothing is left when it is gone. The server is a port
 * at which nobody listens, so that what is allowed is answered too. */
#include "base/clock.h"
#include "gateway/session.h"
#include "tests/fuzz/fuzz.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TURNS = 200, PORT = 1 };

static struct rules rules;
static int keeper;

static void begin(void)
{
    char host[] = "a.com", address[] = "127.0.0.1", method[] = "GET", *methods[] = { method };
    struct rule rule = { .host = host, .port = PORT, .address = address, .methods = { methods, 1, 1 } };
    struct rule_list list = { &rule, 1, 1 };
    int fds[2];

    rules_init(&rules, NETWORK_RULES, &list);
    check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0);
    the_gate = (struct gate){ .loop = events_open(), .rules = &rules, .connections_max = 1000 };
    the_gate.recorder.fd = -1;
    budget_init(&the_gate.budget, &rules, NULL, NULL);
    the_gate.channel.fd = fds[0];
    keeper = fds[1];
    for (size_t i = 0; i < NETWORK_SOCKETS; i++)
        the_gate.sockets[i].fd = -1;
}

static struct connection *come(int fd)
{
    struct connection *connection = connection_open(fd);

    connection->port = PORT;
    check(events_add(the_gate.loop, &connection->client.source, EPOLLIN) == 0);
    rules_verdict(&rules, &(struct question){ .host = "a.com", .host_len = 5, .port = PORT },
                  &connection->purpose->verdict);
    session_begin(connection);
    return connection;
}

static void keep(void)
{
    static struct gateway_note notes[GATEWAY_NOTES];
    ssize_t got;

    for (notes_flush(); (got = recv(keeper, notes, sizeof notes, MSG_DONTWAIT)) > 0; notes_flush()) {
        check((size_t)got % sizeof *notes == 0);
        for (size_t i = 0; i < (size_t)got / sizeof *notes; i++) {
            check(!notes[i].allowed ||
                  (strcmp(notes[i].host, "a.com") == 0 && strcmp(notes[i].method, "GET") == 0));
            connections_noted(&the_gate, &(struct gateway_noted){ .tag = notes[i].tag }, -1);
        }
    }
}

static void turn(int client)
{
    static char heard[65536];

    check(events_turn(the_gate.loop, 0) >= 0);
    keep();
    connections_bury(&the_gate);
    while (recv(client, heard, sizeof heard, MSG_DONTWAIT) > 0)
        continue;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
    int fds[2];

    if (size < 2 || size > 1 << 18)
        return 0;
    if (!the_gate.rules)
        begin();
    check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
    (void)come(fds[0]);
    size_t piece = 1 + (size_t)data[1] * 64;

    if (data[0] & 1)
        check(send(fds[1], preface, sizeof preface - 1, MSG_NOSIGNAL) > 0);
    for (size_t at = 2; at < size; at += piece) {
        (void)send(fds[1], data + at, piece < size - at ? piece : size - at, MSG_NOSIGNAL);
        turn(fds[1]);
    }
    for (int i = 0; i < TURNS && the_gate.connections_len > 1; i++)
        turn(fds[1]);
    connections_tend(&the_gate, UINT64_MAX - 1);
    turn(fds[1]);
    close(fds[1]);
    while (the_gate.connections)
        connection_reset(the_gate.connections);
    connections_bury(&the_gate);
    keep();
    check(the_gate.connections_len == 0);
    return 0;
}
