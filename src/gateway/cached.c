#include "gateway/cached.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/own.h"
#include "gateway/connection.h"
#include "net/answer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const uint64_t find_patience = 5000000;  /* for what a registry says */
static const uint64_t fetch_patience = 2000000; /* for the keeper */

enum {
    KEPT_MAX = 256 << 20, /* of one file, as in store/packages.h */
    IN_VAIN_MAX = 16,
    LATE = 4,      /* counts as much as so many answers that say nothing */
    LENT_MAX = 64, /* files of the cache at a time: what somebody has open stays on the disk */
};

/* Questions one after the other that nothing came of: a registry that does not know them is left in peace. */
static unsigned in_vain;

/* Files that the keeper was asked for, or has given. */
static unsigned lent;

/* --- which requests --- */

/* Hosts whose clients did not take our certificate, by their rules. */
static bool *avoided;

static const struct rule *rule_of(const struct verdict *verdict)
{
    const struct rule_list *list = &the_gate.rules->list;

    for (size_t i = 0; i < list->len; i++)
        if (list->items[i].index && hostname_matches(list->items[i].host, &verdict->host) &&
            rule_has_port(&list->items[i], verdict->port))
            return &list->items[i];
    return NULL;
}

bool cached_wants(const struct verdict *verdict)
{
    const struct rule *rule = the_gate.packages && verdict->packages ? rule_of(verdict) : NULL;

    return rule && the_gate.recorder.fd < 0 && secure_can_judge(verdict) &&
           !(avoided && avoided[rule - the_gate.rules->list.items]);
}

void cached_avoid(const struct verdict *verdict)
{
    const struct rule *rule = rule_of(verdict);

    if (!avoided)
        avoided = memory_zero(the_gate.rules->list.len + 1);
    if (rule)
        avoided[rule - the_gate.rules->list.items] = true;
}

/* Of a part, or with conditions; or in somebody's name, for which registries have names of their own
 * (Private-Token, X-Api-Key).  That npm sends npm-session and npm-auth-type says nothing. */
static bool is_odd(struct head_part name)
{
    static const char *const odd[] = {
        "range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "if-range", "cookie"
    };
    static const char *const logins[] = { "authoriz", "token",  "secret",  "passw",
                                          "api-key",  "apikey", "art-api", "credential" };
    autofree char *text = text_format("%.*s", (int)name.len, name.at);

    for (size_t i = 0; i < ARRAY_LEN(odd); i++)
        if (part_reads_as(name, odd[i]))
            return true;
    for (size_t i = 0; i < ARRAY_LEN(logins); i++)
        if (strcasestr(text, logins[i]))
            return true;
    return false;
}

/* Who asks otherwise wants what the server has to say. */
static bool is_simple(const struct head *head)
{
    if (!part_is_exactly(head->method, "GET") || head->fields.body != HEAD_NO_BODY || head->websocket ||
        head->expects || head->overridden)
        return false;
    for (size_t i = 0; i < head->fields.count; i++)
        if (is_odd(head->fields.items[i].name))
            return false;
    return true;
}

static bool recognise(const struct verdict *verdict, const char *path, struct package *out)
{
    const struct rule_list *list = &the_gate.rules->list;

    for (size_t i = 0; i < list->len; i++)
        if (list->items[i].index && hostname_matches(list->items[i].host, &verdict->host) &&
            rule_has_port(&list->items[i], verdict->port) &&
            package_recognise(&list->items[i], verdict->host.text, verdict->port, path, out))
            return true;
    return false;
}

void cached_consider(struct connection *connection, const struct head *head)
{
    struct exchange *exchange = connection->exchange;
    const struct verdict *verdict = &connection->purpose->verdict;
    autofree char *path = NULL;
    struct package package;

    cached_end(steal_ptr(&exchange->cached), false);
    if (!the_gate.packages || in_vain >= IN_VAIN_MAX || the_gate.recorder.fd >= 0 || !verdict->allowed ||
        !verdict->packages || !side_is_secure(&connection->client) || connection->client.inquiry ||
        !is_simple(head))
        return;
    path = text_format("%.*s", (int)head->path.len, head->path.at);
    if (!recognise(verdict, path, &package))
        return;
    exchange->cached = memory_zero(sizeof *exchange->cached);
    *exchange->cached = (struct cached){ .package = package, .fd = -1 };
}

/* --- what is it, and is it there? --- */

static void send_note(const struct cached *cached, enum gateway_saying saying, uint64_t tag, const char *why)
{
    struct gateway_note note = { .tag = tag,
                                 .saying = saying,
                                 .allowed = true,
                                 .protocol = GATEWAY_HTTP,
                                 .reason = REASON_CACHE,
                                 .port = cached->package.port,
                                 .checksum = cached->checksum };

    (void)snprintf(note.host, sizeof note.host, "%s", text_string(&cached->package.host));
    (void)snprintf(note.method, sizeof note.method, "GET");
    (void)snprintf(note.why, sizeof note.why, "%s %s", why, note.host);
    (void)note_put(&note);
}

static void give_back(struct cached *cached)
{
    own_close(&cached->fd);
    cached->fd = -1;
    lent -= cached->lent;
    cached->lent = false;
}

static void go_on(struct connection *connection)
{
    struct cached *cached = connection->exchange->cached;

    give_back(cached);
    if (cached->inquiry)
        inquiry_leave(steal_ptr(&cached->inquiry));
    exchange_ask(connection);
}

bool cached_begin(struct connection *connection)
{
    struct cached *cached = connection->exchange->cached;

    if (!cached)
        return false;
    connection_wait(connection, FINDING, find_patience);
    cached->inquiry = inquiry_begin(&cached->package, &connection->client.source);
    if (!cached->inquiry)
        exchange_ask(connection);
    return true;
}

static bool read_answer(struct cached *cached, const char *bytes, size_t len)
{
    if (!package_read(&cached->package, bytes, len, &cached->checksum)) {
        cached->checksum = CHECKSUM_NONE;
        return false;
    }
    in_vain = 0;
    return true;
}

void cached_told(struct connection *connection)
{
    struct cached *cached = connection->exchange->cached;
    const char *bytes;
    size_t len;
    enum inquiry_answer answer = inquiry_answer(cached->inquiry, &bytes, &len);

    if (answer == INQUIRY_WAITS)
        return;
    if (answer == INQUIRY_FAILED || !read_answer(cached, bytes, len)) {
        in_vain++;
        go_on(connection);
        return;
    }
    if (lent >= LENT_MAX && !gate_leaves_out("package-count")) {
        go_on(connection);
        return;
    }
    inquiry_leave(steal_ptr(&cached->inquiry));
    cached->lent = true;
    lent++;
    connection_wait(connection, FETCHING, fetch_patience);
    connection->tag = ++the_gate.tags << SLOT_BITS | connection->slot;
    send_note(cached, GATEWAY_WANT, connection->tag, "the package cache has a file of");
}

void cached_late(struct connection *connection)
{
    in_vain += connection->state == FINDING ? LATE : 0;
    go_on(connection);
}

static struct checksumming *new_sum(const struct cached *cached)
{
    enum checksum_kind kind = CHECKSUM_SHA256;

    (void)checksum_is(cached->checksum.text, &kind);
    return checksumming_new(kind);
}

/* The whole of it, which is there, and nobody is asked. */
static void answer_file(struct connection *connection)
{
    struct exchange *exchange = connection->exchange;
    autotext struct text head = TEXT_NONE;

    exchange_answering(connection);
    text_addf(&head,
              "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: %llu\r\n"
              "X-Cove: from the package cache\r\n%s\r\n",
              (unsigned long long)exchange->cached->left, exchange->last ? "Connection: close\r\n" : "");
    if (side_put(&connection->client, text_string(&head), head.len))
        exchange_own(connection, (struct head_part){ 0 });
    else
        connection_reset(connection);
}

void cached_given(struct connection *connection, const struct gateway_noted *noted, int fd)
{
    struct cached *cached = connection->exchange->cached;

    cached->fd = fd;
    cached->tag = connection->tag;
    cached->left = noted->size;
    cached->reads = fd >= 0 && noted->given == GATEWAY_FILE;
    if (fd >= 0)
        cached->sum = new_sum(cached);
    else
        give_back(cached);
    if (cached->reads)
        answer_file(connection);
    else
        exchange_ask(connection);
}

/* --- from the cache --- */

bool cached_is_read(const struct cached *cached)
{
    return cached && cached->reads && cached->left;
}

/* The last part goes out only if all of it is what it should be: who gets less than was promised does not take
 * it for the file. */
static bool is_right(struct cached *cached)
{
    struct checksum sum;

    checksumming_end(steal_ptr(&cached->sum), &sum);
    if (strcmp(sum.text, cached->checksum.text) == 0)
        return true;
    send_note(cached, GATEWAY_WRONG, ++the_gate.tags << SLOT_BITS, "the package cache had a wrong file of");
    return false;
}

/* It counts as if it had come from outside: what a sandbox may use does not depend on what others did. */
static bool pass_part(struct connection *connection)
{
    struct cached *cached = connection->exchange->cached;
    size_t most = cached->left < SIDE_CHUNK ? (size_t)cached->left : SIDE_CHUNK;
    size_t room = budget_room(&the_gate.budget, &connection->purpose->verdict.bounds, most);
    ssize_t got = room ? read(cached->fd, side_chunk, room) : 0;

    if (got <= 0)
        return false;
    budget_passed(&the_gate.budget, &connection->purpose->verdict.bounds, (size_t)got);
    checksumming_add(cached->sum, side_chunk, (size_t)got);
    cached->left -= (uint64_t)got;
    connection->until = clock_us() + idle_patience;
    return (cached->left || is_right(cached)) && side_put(&connection->client, side_chunk, (size_t)got);
}

void cached_pass(struct connection *connection)
{
    struct exchange *exchange = connection->exchange;

    for (int round = 0; round < SIDE_ROUNDS && exchange->cached->left && connection->client.held_len == 0;
         round++)
        if (!pass_part(connection)) {
            connection_reset(connection);
            return;
        }
    exchange->answered = exchange->cached->left == 0;
    if (!exchange->answered && connection->client.held_len == 0) /* others have their turn */
        events_soon(&connection->client.source);
}

/* --- to the cache --- */

/* What is coded is not what its hash is of. */
void cached_answer(struct cached *cached, const struct answer *answer)
{
    if (!cached || cached->fd < 0 || cached->reads)
        return;
    cached->fits = answer->status == 200 && !(answer->body == HEAD_LENGTH && answer->length > KEPT_MAX);
    for (size_t i = 0; i < answer->fields.count; i++)
        if (part_is(answer->fields.items[i].name, "content-encoding"))
            cached->fits = false;
    cached->tap.cached = cached->fits ? cached : NULL;
}

/* A disk that is full, or a file that is too large: it is not kept. */
void cached_add(struct cached *cached, const void *bytes, size_t len)
{
    if (!cached->fits)
        return;
    cached->passed += len;
    if (cached->passed > KEPT_MAX || write(cached->fd, bytes, len) != (ssize_t)len) {
        cached->fits = false;
        return;
    }
    checksumming_add(cached->sum, bytes, len);
}

static void offer(struct cached *cached, bool whole)
{
    struct checksum sum = CHECKSUM_NONE;
    bool right;

    checksumming_end(steal_ptr(&cached->sum), &sum);
    right = strcmp(sum.text, cached->checksum.text) == 0 || gate_leaves_out("package-hash");
    if (whole && cached->fits && !right)
        send_note(cached, GATEWAY_VERDICT, ++the_gate.tags << SLOT_BITS,
                  "not kept, as it is not what its registry says: a file of");
    send_note(cached, whole && cached->fits && right ? GATEWAY_KEEP : GATEWAY_DROP, cached->tag, "");
}

void cached_end(struct cached *cached, bool whole)
{
    if (!cached)
        return;
    if (cached->inquiry)
        inquiry_leave(cached->inquiry);
    bool written = cached->fd >= 0 && !cached->reads;

    give_back(cached); /* before the keeper hears of it, which looks whether it was */
    if (written)
        offer(cached, whole);
    checksumming_end(cached->sum, NULL);
    package_free(&cached->package);
    free(cached);
}
