#include "gateway/inquiry.h"

#include "base/memory.h"
#include "gateway/connection.h"
#include "net/answer.h"

#include <errno.h>
#include <stdlib.h>

enum {
    INQUIRIES_MAX = 128,       /* also those that only keep their server */
    INQUIRIES_BYTES = 64 << 20 /* of all their answers at a time */
};

struct inquiry {
    struct inquiry *next, **from;
    struct connection *connection; /* whose client it is; NULL: it is gone */
    struct event_source *waiting;  /* for the answer; NULL: nobody, and it may be used again */
    struct hostname host;
    uint16_t port;
    struct text request, answer; /* not read yet, and its head as far as it came */
    struct text data;
    struct body body;
    bool begun, whole, good;
};

static struct inquiry *inquiries;
static size_t inquiries_len, inquiries_bytes;

static void clear(struct inquiry *inquiry)
{
    inquiries_bytes -= inquiry->data.len;
    text_free(&inquiry->request);
    text_free(&inquiry->answer);
    text_free(&inquiry->data);
    inquiry->begun = inquiry->whole = inquiry->good = false;
}

static void drop(struct inquiry *inquiry)
{
    clear(inquiry);
    *inquiry->from = inquiry->next;
    if (inquiry->next)
        inquiry->next->from = inquiry->from;
    inquiries_len--;
    free(inquiry);
}

/* --- asking --- */

static struct inquiry *find_idle(const struct url *index)
{
    for (struct inquiry *at = inquiries; at; at = at->next)
        if (!at->waiting && at->connection && at->connection->state == REQUEST && at->port == index->port &&
            strcmp(at->host.text, index->host.text) == 0)
            return at;
    return NULL;
}

/* One whose server nobody needs now makes room. */
static bool make_room(void)
{
    for (struct inquiry *at = inquiries, *next; inquiries_len >= INQUIRIES_MAX && at; at = next) {
        next = at->next;
        if (!at->waiting && at->connection)
            connection_close(at->connection);
    }
    return inquiries_len < INQUIRIES_MAX;
}

static struct inquiry *open_one(const struct url *index)
{
    struct inquiry *inquiry;
    struct connection *connection;
    struct verdict verdict;

    rules_verdict(the_gate.rules,
                  &(struct question){
                      .host = index->host.text, .host_len = strlen(index->host.text), .port = index->port },
                  &verdict);
    if (!verdict.allowed || !secure_can_judge(&verdict) || !make_room())
        return NULL;
    inquiry = memory_zero(sizeof *inquiry);
    connection = connection_open(-1);
    *inquiry = (struct inquiry){ .next = inquiries,
                                 .from = &inquiries,
                                 .connection = connection,
                                 .host = index->host,
                                 .port = index->port };
    if (inquiry->next)
        inquiry->next->from = &inquiry->next;
    inquiries = inquiry;
    inquiries_len++;
    connection->client.inquiry = inquiry;
    connection->port = index->port;
    connection->purpose->verdict = verdict;
    connection_wait(connection, REQUEST, keep_patience);
    exchange_begin(connection);
    return inquiry;
}

/* Nothing that is said inside is in it but the names of host and package, and those in plain characters only.
 */
static void write_request(const struct package *package, struct text *out)
{
    const struct url *index = &package->index;

    text_addf(out, "GET %s HTTP/1.1\r\nHost: %s", text_string(&package->asked), index->host.text);
    if (index->port != 443)
        text_addf(out, ":%u", index->port);
    text_addf(out, "\r\nAccept: %s\r\nAccept-Encoding: identity\r\nUser-Agent: cove\r\n\r\n", package->accept);
}

struct inquiry *inquiry_begin(const struct package *package, struct event_source *waiting)
{
    struct inquiry *inquiry = find_idle(&package->index);

    if (!inquiry)
        inquiry = open_one(&package->index);
    if (!inquiry)
        return NULL;
    clear(inquiry);
    inquiry->waiting = waiting;
    write_request(package, &inquiry->request);
    events_soon(&inquiry->connection->client.source);
    return inquiry;
}

ssize_t inquiry_read(struct inquiry *inquiry, void *bytes, size_t size)
{
    size_t len = inquiry->request.len < size ? inquiry->request.len : size;

    if (len == 0) {
        errno = EAGAIN;
        return -1;
    }
    memcpy(bytes, inquiry->request.data, len);
    text_drop(&inquiry->request, len);
    return (ssize_t)len;
}

/* --- the answer --- */

static ssize_t gone(void)
{
    errno = EPIPE;
    return -1;
}

static bool has_coding(const struct answer *answer)
{
    for (size_t i = 0; i < answer->fields.count; i++)
        if (part_is(answer->fields.items[i].name, "content-encoding") &&
            !part_is(answer->fields.items[i].value, "identity"))
            return true;
    return false;
}

static bool take_head(void *whose, const struct answer *answer)
{
    struct inquiry *inquiry = whose;

    if (answer->status >= 200) {
        body_begin(&inquiry->body, answer->body, answer->length, true);
        inquiry->begun = true;
        inquiry->good = answer->status == 200 && !has_coding(answer);
    }
    return true;
}

static bool take_body(struct inquiry *inquiry, const char *bytes, size_t len)
{
    for (size_t at = 0; at < len && !inquiry->body.over;) {
        struct head_part data;
        int64_t took = body_next(&inquiry->body, bytes + at, len - at, &data);

        if (took < 0 || inquiry->data.len + data.len > PACKAGE_ANSWER_MAX ||
            inquiries_bytes + data.len > INQUIRIES_BYTES)
            return false;
        text_add_bytes(&inquiry->data, data.at, data.len);
        inquiries_bytes += data.len;
        at += (size_t)took;
    }
    return true;
}

static void tell(struct inquiry *inquiry)
{
    if (inquiry->waiting)
        events_soon(inquiry->waiting);
}

ssize_t inquiry_write(struct inquiry *inquiry, const void *bytes, size_t len)
{
    ssize_t head = inquiry->begun ? 0 : answer_heads(&inquiry->answer, bytes, len, false, take_head, inquiry);

    if (head < 0 || inquiry->whole)
        return gone();
    if (inquiry->begun && !take_body(inquiry, (const char *)bytes + head, len - (size_t)head))
        return gone();
    inquiry->whole = inquiry->begun && inquiry->body.over;
    if (inquiry->whole)
        tell(inquiry);
    return (ssize_t)len;
}

enum inquiry_answer inquiry_answer(const struct inquiry *inquiry, const char **bytes, size_t *len)
{
    if (inquiry->whole && inquiry->good) {
        *bytes = text_string(&inquiry->data);
        *len = inquiry->data.len;
        return INQUIRY_ANSWERED;
    }
    return inquiry->whole || !inquiry->connection ? INQUIRY_FAILED : INQUIRY_WAITS;
}

/* --- the end --- */

void inquiry_leave(struct inquiry *inquiry)
{
    inquiry->waiting = NULL;
    if (inquiry->connection && inquiry->whole)
        clear(inquiry);
    else if (inquiry->connection)
        connection_close(inquiry->connection);
    else
        drop(inquiry);
}

void inquiry_close(struct inquiry *inquiry)
{
    inquiry->connection = NULL;
    if (!inquiry->waiting)
        drop(inquiry);
    else
        tell(inquiry);
}
