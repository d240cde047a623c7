/* The sandbox's name server.
 *
 * Nothing is asked outside for an answer: an allowed name gets an address that stands for it, and is resolved
 * when somebody connects to it.  A name that no rule allows gets one that leads to the refusal, which explains
 * more than "could not resolve host" does. */

#include "gateway/gate.h"

#include "base/array.h"

#include <string.h>
#include <sys/socket.h>

enum { TTL_S = 30, AT_A_TIME = 64 };

/* Whether any rule lets anybody go there at some port. */
static bool is_allowed_somewhere(const struct rules *rules, const struct hostname *host)
{
    static const uint16_t usual[] = { 443, 80 };
    struct question question = { .host = host->text, .host_len = strlen(host->text) };
    struct verdict verdict;

    for (size_t i = 0; i < ARRAY_LEN(usual); i++) {
        question.port = usual[i];
        rules_verdict(rules, &question, &verdict);
        if (verdict.allowed)
            return true;
    }
    for (size_t i = 0; i < rules->list.len; i++) {
        const struct rule *rule = &rules->list.items[i];

        question.port = rule->port;
        if (!rule->port || !hostname_matches(rule->host, host))
            continue;
        rules_verdict(rules, &question, &verdict);
        if (verdict.allowed)
            return true;
    }
    return false;
}

static bool is_localhost(const char *name)
{
    size_t len = strlen(name), tail = strlen(".localhost");

    return strcmp(name, "localhost") == 0 || (len > tail && strcmp(name + len - tail, ".localhost") == 0);
}

static enum dns_code give(struct gate *gate, const struct hostname *host, struct address *four,
                          struct address *six)
{
    static const unsigned char loopback4[] = { 127, 0, 0, 1 }, loopback6[16] = { [15] = 1 };

    if (is_localhost(host->text)) {
        *four = address_from(loopback4, sizeof loopback4);
        *six = address_from(loopback6, sizeof loopback6);
        return DNS_NOERROR;
    }
    enum pool_kind kind = is_allowed_somewhere(gate->rules, host) ? POOL_ALLOWED : POOL_REFUSED;

    return pool_give(&gate->pool, kind, host->text, four, six) ? DNS_NOERROR : DNS_SERVFAIL;
}

size_t question_answer(struct gate *gate, const unsigned char *bytes, size_t len, unsigned char *out)
{
    struct address four = ADDRESS_NONE, six = ADDRESS_NONE;
    struct dns_question question;
    struct hostname host;
    enum dns_code code = DNS_SERVFAIL;
    enum dns_read read = dns_read_question(bytes, len, &question, &code);

    if (read == DNS_IGNORE)
        return 0;
    if (read == DNS_ANSWER)
        return dns_write_answer(bytes, question.end, code, NULL, 0, out);
    if (question.type != DNS_A && question.type != DNS_AAAA) /* there is the name, but nothing else of it */
        return dns_write_answer(bytes, question.end, DNS_NOERROR, NULL, 0, out);
    if (hostname_read(question.name, question.len, &host) || hostname_is_address(&host))
        return dns_write_answer(bytes, question.end, DNS_NXDOMAIN, NULL, 0, out);
    code = give(gate, &host, &four, &six);
    return dns_write_answer(bytes, question.end, code, question.type == DNS_A ? &four : &six, TTL_S, out);
}

void questions_ready(struct event_source *source, uint32_t events)
{
    unsigned char bytes[4096], answer[DNS_UDP_MAX];

    (void)events;
    for (int i = 0; i < AT_A_TIME; i++) {
        struct sockaddr_storage from;
        socklen_t size = sizeof from;
        ssize_t got = recvfrom(source->fd, bytes, sizeof bytes, 0, (struct sockaddr *)&from, &size);

        if (got < 0)
            return;
        size_t len = question_answer(&the_gate, bytes, (size_t)got, answer);

        if (len)
            (void)sendto(source->fd, answer, len, MSG_NOSIGNAL, (struct sockaddr *)&from, size);
    }
}
