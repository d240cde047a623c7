/* Verdicts on their way to the keeper. */

#include "gateway/connection.h"

#include "base/clock.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>

static struct amounts untold(const struct budget *budget)
{
    const struct amounts *spent = &budget->spent, *told = &budget->told;

    return (struct amounts){ spent->bytes - told->bytes, spent->requests - told->requests,
                             spent->connections - told->connections };
}

/* Verdicts of this turn, which the keeper hears of at its end: one message, and one answer, for all of them. */
static struct {
    struct gateway_note items[GATEWAY_NOTES];
    size_t len;
} queue;

static bool send_all(const struct gateway_note *notes, size_t count, bool wait)
{
    int flags = MSG_NOSIGNAL | (wait ? 0 : MSG_DONTWAIT);
    size_t size = count * sizeof *notes;

    return send(the_gate.channel.fd, notes, size, flags) == (ssize_t)size;
}

static bool flush(bool wait)
{
    if (queue.len && !send_all(queue.items, queue.len, wait))
        return false;
    queue.len = 0;
    return true;
}

void notes_flush(void)
{
    (void)flush(false); /* or in the next turn */
}

/* False: the keeper takes none now. */
static struct gateway_note *queue_next(void)
{
    if (queue.len == GATEWAY_NOTES && !flush(false))
        return NULL;
    return &queue.items[queue.len++];
}

/* Behind those that wait. */
static bool send_note(const struct gateway_note *note, bool wait)
{
    if (!flush(wait) || !send_all(note, 1, wait))
        return false;
    if (note->rule == 0)
        the_gate.budget.told = the_gate.budget.spent;
    return true;
}

/* One that stays keeps the rules it has until it is told otherwise. */
const char *note_command(const struct verdict *verdict)
{
    static char command[GATEWAY_COMMAND];
    bool stays = *verdict->command && *the_gate.sandbox;
    size_t head = strlen(VERDICT_REGISTRY);

    if (stays && strncmp(verdict->command, VERDICT_REGISTRY, head) == 0) {
        (void)snprintf(command, sizeof command, "cove policy set --registry %s %s", verdict->command + head,
                       the_gate.sandbox);
        return command;
    }
    (void)snprintf(command, sizeof command, "%s%s%s", verdict->command, stays ? " && cove policy set " : "",
                   stays ? the_gate.sandbox : "");
    return command;
}

/* What a rule would have to name, if there is one for the host and not for this request. */
static void add_path(struct gateway_note *note, const struct connection *connection)
{
    const struct verdict *verdict = &connection->purpose->verdict;
    const char *path, *request = connection->exchange ? text_string(&connection->exchange->request) : "";
    size_t len;

    if (verdict->reason != REASON_AUDIT ||
        (verdict->without != REASON_METHOD && verdict->without != REASON_PATH) || !strchr(request, ' '))
        return;
    path = strchr(request, ' ') + 1;
    len = strcspn(path, " ?");
    if (len < sizeof note->path)
        memcpy(note->path, path, len);
}

bool note_put(struct gateway_note *note)
{
    note->spent = untold(&the_gate.budget);
    return send_note(note, false);
}

static bool send_failed(const struct connection *connection, const char *why)
{
    const struct purpose *purpose = connection->purpose;
    const struct verdict *verdict = &purpose->verdict;
    struct gateway_note note = { .tag = connection->tag,
                                 .saying = GATEWAY_FAILED,
                                 .allowed = true,
                                 .protocol = purpose->protocol,
                                 .reason = verdict->reason,
                                 .without = verdict->without,
                                 .port = verdict->port };

    (void)snprintf(note.host, sizeof note.host, "%s", verdict->host.text);
    (void)snprintf(note.method, sizeof note.method, "%s", purpose->method);
    (void)snprintf(note.why, sizeof note.why, "could not reach %s at port %u: %s", verdict->host.text,
                   verdict->port, why);
    return note_put(&note);
}

void note_failed(const struct connection *connection, const char *why)
{
    (void)send_failed(connection, why);
}

bool note_send(struct connection *connection)
{
    const struct purpose *purpose = connection->purpose;
    const struct verdict *verdict = &purpose->verdict;

    if (connection->failed)
        return send_failed(connection, verdict->why);

    struct gateway_note *note = queue_next();

    if (!note)
        return false;
    *note = (struct gateway_note){ .tag = connection->tag,
                                   .allowed = verdict->allowed,
                                   .protocol = purpose->protocol,
                                   .reason = verdict->reason,
                                   .without = verdict->without,
                                   .port = verdict->port,
                                   .spent = untold(&the_gate.budget) };
    the_gate.budget.told = the_gate.budget.spent;
    (void)snprintf(note->host, sizeof note->host, "%s", verdict->host.text);
    (void)snprintf(note->method, sizeof note->method, "%s", purpose->method);
    add_path(note, connection);
    (void)snprintf(note->why, sizeof note->why, "%s", verdict->why);
    (void)snprintf(note->command, sizeof note->command, "%s", note_command(verdict));
    return true;
}

/* Without a bound nobody asks.  What is not taken now is told the next time. */
void notes_tell_spent(bool wait)
{
    struct budget *budget = &the_gate.budget;
    struct gateway_note note = { .spent = untold(budget) };

    if (!budget->on)
        return;
    bool told = flush(wait); /* what waits there says what was spent, too */

    if (note.spent.bytes || note.spent.connections)
        told = send_note(&note, wait) && told;
    for (size_t i = 0; i < budget->rules->list.len; i++) {
        struct budget_use *use = &budget->uses[i];
        const struct gateway_note of_rule = { .rule = (uint32_t)i + 1, .spent.bytes = use->bytes - use->told };

        if (!budget->rules->list.items[i].bytes || !of_rule.spent.bytes)
            continue;
        if (send_note(&of_rule, wait))
            use->told = use->bytes;
        else
            told = false;
    }
    if (told)
        budget->quiet = 0;
}

/* A keeper that is slow is asked again (connections_tend).  What is allowed counts from now on. */
void note(struct connection *connection)
{
    struct verdict *verdict = &connection->purpose->verdict;

    if (verdict->allowed && !connection->failed && !gate_leaves_out("budget"))
        (void)budget_request(&the_gate.budget, verdict, clock_us());
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
    verdict->reason = REASON_PROTOCOL;
    verdict->command[0] = '\0';
    note(connection);
}
