#pragma once

/* What a sandbox has used of the network, and whether there is some left: of its budget, and of what rules
 * allow.  Pure: whoever counts for real is the gateway, and whoever remembers is the keeper. */

#include "gateway/rules.h"

struct budget {
    const struct rules *rules;
    struct amounts spent, told; /* told: to the keeper */
    struct budget_use {
        uint64_t bytes, told;
        uint64_t since;    /* a second or a minute from here on is what `requests` are of */
        uint32_t requests; /* in it */
    } * uses;              /* one for each rule */
    bool on;               /* there is a bound at all */
    uint64_t quiet;        /* bytes that passed since the keeper was last told of all */
};

/* So many bytes pass before the keeper is told: who is killed takes no more along. */
enum { BUDGET_QUIET = 65536 };

/* `spent` and `bytes`, one for each rule, were before; or NULL: nothing. */
void budget_init(struct budget *budget, const struct rules *rules, const struct amounts *spent,
                 const uint64_t *bytes);
void budget_free(struct budget *budget);

/* Nobody knows what was made of rates: of the next second or minute nothing is left. */
void budget_spend_rates(struct budget *budget, uint64_t now_us);

/* One more request, and one more connection to a server.  False: `verdict` is the refusal now. */
bool budget_request(struct budget *budget, struct verdict *verdict, uint64_t now_us);
bool budget_connection(struct budget *budget, struct verdict *verdict);

/* Whether bytes are left for it.  False: `verdict` is the refusal now. */
bool budget_has_bytes(const struct budget *budget, struct verdict *verdict);

/* How many of `wanted` bytes may pass; and that so many did. */
size_t budget_room(const struct budget *budget, const struct bounds *bounds, size_t wanted);
void budget_passed(struct budget *budget, const struct bounds *bounds, size_t bytes);
