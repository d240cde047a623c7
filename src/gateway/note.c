/* Verdicts on their way to the keeper. */

#include "gateway/connection.h"

#include "base/clock.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>

bool note_send(struct connection *connection)
{
    const struct purpose *purpose = connection->purpose;
    const struct verdict *verdict = &purpose->verdict;
    struct gateway_note note = { .tag = connection->tag,
                                 .allowed = verdict->allowed,
                                 .protocol = purpose->protocol,
                                 .port = verdict->port };

    (void)snprintf(note.host, sizeof note.host, "%s", verdict->host.text);
    (void)snprintf(note.method, sizeof note.method, "%s", purpose->method);
    (void)snprintf(note.why, sizeof note.why, "%s", verdict->why);
    (void)snprintf(note.command, sizeof note.command, "%s", verdict->command);
    return send(the_gate.channel.fd, &note, sizeof note, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof note;
}

/* A keeper that is slow is asked again (connections_tend). */
void note(struct connection *connection)
{
    connection_wait(connection, NOTING, note_patience);
    connection->tag = ++the_gate.tags << SLOT_BITS | connection->slot;
    connection->noted = note_send(connection);
    side_watch(&connection->client, false);
    side_watch(&connection->server, false);
}

void note_deny(struct connection *connection, const char *format, ...)
{
    struct verdict *verdict = &connection->purpose->verdict;
    va_list list;

    va_start(list, format);
    (void)vsnprintf(verdict->why, sizeof verdict->why, format, list);
    va_end(list);
    verdict->allowed = false;
    verdict->command[0] = '\0';
    note(connection);
}
