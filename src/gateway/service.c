/* Services of the host that the sandbox has at its own loopback (network.host-services).
 *
 * Who is reached is known from the port, so nothing that is said has to be read.  Whether, is known from the
 * rules, as for any other address. */

#include "gateway/connection.h"

#include "base/array.h"

/* At which of them a service listens is its own affair. */
static const char *const loopback[] = { "127.0.0.1", "::1" };

static bool judge(const struct connection *connection, const char *address, struct verdict *out)
{
    rules_verdict(the_gate.rules,
                  &(struct question){ .host = address, .host_len = strlen(address), .port = connection->port },
                  out);
    return out->allowed || gate_leaves_out("rules");
}

void service_begin(struct connection *connection)
{
    struct verdict *verdict = &connection->purpose->verdict;

    verdict->allowed = judge(connection, loopback[0], verdict);
    if (verdict->allowed && verdict->inspect)
        note_deny(connection, "the rule for %s looks at requests, which are not seen at a service of the host",
                  verdict->host.text);
    else
        note(connection);
}

void service_dial(struct connection *connection)
{
    struct purpose *purpose = connection->purpose;
    struct verdict verdict;

    purpose->addresses_len = purpose->at = 0;
    for (size_t i = 0; i < ARRAY_LEN(loopback); i++)
        if (judge(connection, loopback[i], &verdict))
            purpose->addresses[purpose->addresses_len++] = verdict.host.address;
    dial_next(connection);
}
