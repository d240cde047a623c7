/* Answers in place of a server: of a rule, or of a record.  They are framed by nobody but us. */

#include "gateway/connection.h"

#include "base/own.h"
#include "base/text.h"
#include "gateway/tape.h"
#include "spec/mock.h"

struct own_answer {
    unsigned status;
    const char *reason;
    const struct text *fields; /* whole lines */
    const struct text *body;
    uint64_t length; /* as it is said: a HEAD has the length of a body that is not there */
};

static void answer(struct connection *connection, const struct own_answer *own)
{
    const struct exchange *exchange = connection->exchange;
    bool bare = own->status == 204 || own->status == 304;
    autotext struct text head = TEXT_NONE;

    exchange_answering(connection);
    text_addf(&head, "HTTP/1.1 %u %s\r\n%s", own->status, own->reason, text_string(own->fields));
    if (!bare)
        text_addf(&head, "Content-Length: %llu\r\n", (unsigned long long)own->length);
    text_addf(&head, "%s\r\n", exchange->last ? "Connection: close\r\n" : "");
    if (!side_put(&connection->client, text_string(&head), head.len)) {
        connection_reset(connection);
        return;
    }
    exchange_own(connection,
                 (struct head_part){ own->body->data, bare || exchange->to_head ? 0 : own->body->len });
}

void mock_answer(struct connection *connection, const struct mock *mock)
{
    autotext struct text fields = TEXT_NONE;

    for (size_t i = 0; i < mock->headers.len; i++)
        text_addf(&fields, "%s\r\n", mock->headers.items[i]);
    answer(connection, &(struct own_answer){ mock->status, "", &fields, &mock->body, mock->body.len });
}

/* --- what was recorded --- */

/* Which of several it is, the body decides: all of that is heard first. */
void replay_begin(struct connection *connection)
{
    static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
    struct exchange *exchange = connection->exchange;

    side_close(&connection->server);
    tap_begin(&exchange->asked, false);
    exchange->replays = exchange->deaf = true;
    connection_wait(connection, EXCHANGING, idle_patience);
    if (exchange->expects && !exchange->body.over && !side_put(&connection->client, go_on, strlen(go_on)))
        connection_reset(connection);
    else
        exchange_run(connection);
}

/* What frames a body is ours to say, and a secret was not kept. */
static void add_fields(const struct take_fields *from, struct text *out, uint64_t *length)
{
    for (size_t i = 0; i < from->len; i++) {
        const struct take_field *field = &from->items[i];
        const struct head_field read = { { field->name, strlen(field->name) },
                                         { field->value, strlen(field->value) } };

        if (part_is(read.name, "content-length"))
            *length = strtoull(field->value, NULL, 10);
        if (!field->hashed && !field_is_ours(&read))
            text_addf(out, "%s: %s\r\n", field->name, field->value);
    }
}

void replay_answer(struct connection *connection)
{
    struct exchange *exchange = connection->exchange;
    const struct verdict *verdict = &connection->purpose->verdict;
    const struct tape_question question = { verdict->host.text, verdict->port, connection->purpose->method,
                                            text_string(&exchange->path) };
    autotext struct text fields = TEXT_NONE;
    char sha256[SHA256_TEXT];
    uint64_t length = 0;

    tap_end(&exchange->asked, sha256);
    exchange->replays = false;

    const struct take *take = tape_take(the_gate.rules->tape, &question, sha256);

    if (!take) { /* it was there when the request was judged */
        connection_reset(connection);
        return;
    }
    add_fields(&take->response.fields, &fields, &length);
    if (!exchange->to_head)
        length = take->response.body.len;
    answer(connection,
           &(struct own_answer){ (unsigned)take->status, take->reason, &fields, &take->response.body, length });
}
