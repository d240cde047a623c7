/* Names that are asked for by TCP. */

#include "gateway/connection.h"

#include "base/clock.h"

#include <errno.h>

enum { DNS_TCP_MAX = 4096 };

/* One whole message that was heard; false: there is none. */
static bool answer_question(struct connection *connection)
{
    struct side *client = &connection->client;
    const unsigned char *bytes = (unsigned char *)client->heard.data;
    unsigned char out[2 + DNS_UDP_MAX];
    size_t len = client->heard.len < 2 ? 0 : (size_t)bytes[0] << 8 | bytes[1];

    if (client->heard.len < 2 || client->heard.len < len + 2)
        return false;
    size_t size = question_answer(&the_gate, bytes + 2, len, out + 2);

    out[0] = (unsigned char)(size >> 8);
    out[1] = (unsigned char)size;
    side_forget(client, len + 2);
    if (size && side_put(client, (char *)out, size + 2) && side_flush(client) && client->held_len < DNS_TCP_MAX)
        return true;
    connection_reset(connection);
    return false;
}

void tcp_questions_read(struct connection *connection)
{
    struct side *client = &connection->client;
    bool first = client->heard.len == 0;
    int heard = side_hear(client, DNS_TCP_MAX);

    if (heard < 0 && errno == EAGAIN)
        return;
    if (heard <= 0) {
        connection_close(connection);
        return;
    }
    if (first) /* of a question, which has as long to become whole */
        connection->until = clock_us() + early_patience;
    while (answer_question(connection))
        connection->until = clock_us() + early_patience;
    if (!connection->closed && client->heard.len == DNS_TCP_MAX)
        connection_reset(connection); /* longer than any question is */
}
