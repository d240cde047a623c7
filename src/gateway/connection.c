#include "gateway/connection.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/own.h"
#include "gateway/session.h"

#include <stdlib.h>
#include <sys/epoll.h>

/* --- beginning and end --- */

static void side_ready(struct event_source *source, uint32_t events);

/* A slot of its own, so that a tag leads to its connection.  There are as many as connections. */
static uint32_t take_slot(struct gate *gate, struct connection *connection)
{
    uint32_t slot = gate->slot;

    if (!gate->slots)
        gate->slots = memory_zero(sizeof(struct connection *) * (1U << SLOT_BITS));
    while (gate->slots[slot])
        slot = (slot + 1) & ((1U << SLOT_BITS) - 1);
    gate->slots[slot] = connection;
    gate->slot = (slot + 1) & ((1U << SLOT_BITS) - 1);
    return slot;
}

struct connection *connection_open(int fd)
{
    struct gate *gate = &the_gate;
    struct connection *connection = memory_zero(sizeof *connection);

    *connection = (struct connection){
        .next = gate->connections,
        .from = &gate->connections,
        .client = { { fd, 0, side_ready }, .connection = connection },
        .server = { { -1, 0, side_ready }, .connection = connection, .counted = &connection->bounds },
        .purpose = memory_zero(sizeof *connection->purpose),
        .slot = take_slot(gate, connection)
    };
    if (connection->next)
        connection->next->from = &connection->next;
    gate->connections = connection;
    if (++gate->connections_len >= gate->connections_max)
        doors_watch(false);
    return connection;
}

void connection_drop_purpose(struct connection *connection)
{
    if (!connection->purpose)
        return;
    lookup_end(connection->purpose->lookup);
    free(connection->purpose);
    connection->purpose = NULL;
}

void connection_close(struct connection *connection)
{
    struct gate *gate = &the_gate;

    if (connection->closed)
        return;
    connection->closed = true;
    side_close(&connection->client);
    side_close(&connection->server);
    connection_drop_purpose(connection);
    exchange_free(connection->exchange);
    session_free(connection->session);
    notes_tell_spent(false);
    gate->slots[connection->slot] = NULL;
    *connection->from = connection->next;
    if (connection->next)
        connection->next->from = connection->from;
    connection->buried = gate->buried;
    gate->buried = connection;
    gate->connections_len--;
    if (gate->full)
        doors_watch(true);
}

void connection_reset(struct connection *connection)
{
    side_abort(&connection->client);
    side_abort(&connection->server);
    connection_close(connection);
}

void connections_end(struct gate *gate)
{
    while (gate->connections)
        connection_close(gate->connections);
}

void connections_bury(struct gate *gate)
{
    while (gate->buried) {
        struct connection *dead = gate->buried;

        gate->buried = dead->buried;
        free(dead);
    }
}

/* --- what happens to it --- */

void connection_wait(struct connection *connection, enum state state, uint64_t patience)
{
    connection->state = state;
    connection->until = clock_us() + patience;
}

static void side_ready(struct event_source *source, uint32_t events)
{
    struct side *side = (struct side *)source;
    struct connection *connection = side->connection;

    (void)events;
    if (connection->closed)
        return;
    connection->spoke |= side == &connection->client;
    connection->stirred |= side == &connection->server;
    switch (connection->state) {
    case READING:
        first_read(connection);
        break;
    case ASKING:
        tcp_questions_read(connection);
        break;
    case ACCEPTING:
        secure_accepting(connection);
        break;
    case SECURING:
        secure_connecting(connection);
        break;
    case CONNECTING:
        if (side == &connection->server)
            dialled(connection);
        break;
    case TUNNELLING:
        if (side == &connection->server)
            upstream_read(connection);
        break;
    case RELAYING:
        relay(connection);
        break;
    case REQUEST:
    case EXCHANGING:
        exchange_run(connection);
        break;
    case MULTIPLEXED:
        session_run(connection->session);
        break;
    case CLOSING:
        closing(connection);
        break;
    case FINDING:
        cached_told(connection);
        break;
    case NOTING:
    case FETCHING:
    case LOOKING_UP:
        break;
    }
}

/* A tag is the number of a verdict and, below it, the slot of its connection. */
void connections_noted(struct gate *gate, const struct gateway_noted *noted, int fd)
{
    struct connection *connection = gate->slots ? gate->slots[noted->tag & ((1U << SLOT_BITS) - 1)] : NULL;
    bool known = connection && connection->tag == noted->tag;

    if (known && connection->state == FETCHING) {
        cached_given(connection, noted, fd);
        return;
    }
    own_close(&fd);
    if (!known || connection->state != NOTING || !connection->noted)
        return;
    if (!connection->purpose->verdict.allowed || connection->failed)
        refuse(connection);
    else if (connection->exchange)
        exchange_go(connection);
    else
        dial_begin(connection);
}

static void time_is_up(struct connection *connection)
{
    bool partial = connection->client.heard.len;

    if (connection->state == READING)
        first_silent(connection);
    else if (connection->state == REQUEST && partial)
        request_refuse(connection, "it did not come whole in time");
    else if (connection->state == FINDING || connection->state == FETCHING)
        cached_late(connection);
    else if (connection->state == MULTIPLEXED)
        session_late(connection->session);
    else if (connection->state == CONNECTING || connection->state == TUNNELLING ||
             connection->state == SECURING)
        dial_late(connection);
    else if (connection->state == REQUEST || (connection->state == CLOSING && connection->client.held_len == 0))
        connection_close(connection); /* what it has not read yet, the kernel keeps for it */
    else
        connection_reset(connection);
}

void connections_tend(struct gate *gate, uint64_t now)
{
    notes_tell_spent(false);
    if (gate->full && gate->connections_len < gate->connections_max)
        doors_watch(true);
    /* One that goes may take others along: they are still there until they are buried, and lead on. */
    for (struct connection *at = gate->connections; at; at = at->next) {
        if (at->closed)
            continue;
        if (at->state == NOTING && !at->noted)
            at->noted = note_send(at);
        else if (at->state == LOOKING_UP && at->purpose->lookup)
            (void)lookup_tend(at->purpose->lookup, now);
        else if (now >= at->until)
            time_is_up(at);
    }
}
