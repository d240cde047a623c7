#include "gateway/budget.h"

#include "base/memory.h"
#include "base/own.h"
#include "base/text.h"
#include "spec/forms.h"

#include <stdlib.h>

void budget_init(struct budget *budget, const struct rules *rules, const struct amounts *spent,
                 const uint64_t *bytes)
{
    const struct amounts *most = &rules->budget;

    *budget = (struct budget){ .rules = rules,
                               .uses = memory_zero(sizeof *budget->uses * (rules->list.len + 1)),
                               .on = most->bytes || most->requests || most->connections };
    if (spent)
        budget->spent = budget->told = *spent;
    for (size_t i = 0; i < rules->list.len; i++) {
        budget->on |= rules->list.items[i].bytes || rules->list.items[i].rate.requests;
        if (bytes)
            budget->uses[i].bytes = budget->uses[i].told = bytes[i];
    }
}

void budget_free(struct budget *budget)
{
    free(budget->uses);
    *budget = (struct budget){ 0 };
}

static struct budget_use *use_of(const struct budget *budget, const struct rule *rule)
{
    return &budget->uses[rule - budget->rules->list.items];
}

static const char *place_of(const struct rule *rule)
{
    return rule->place ? rule->place : "a rule";
}

/* --- bytes --- */

static uint64_t left_of(uint64_t most, uint64_t spent)
{
    if (!most)
        return UINT64_MAX;
    return spent < most ? most - spent : 0;
}

size_t budget_room(const struct budget *budget, const struct bounds *bounds, size_t wanted)
{
    uint64_t room = left_of(budget->rules->budget.bytes, budget->spent.bytes);

    for (size_t i = 0; i < bounds->len; i++) {
        uint64_t left = left_of(bounds->items[i]->bytes, use_of(budget, bounds->items[i])->bytes);

        room = left < room ? left : room;
    }
    return room < wanted ? (size_t)room : wanted;
}

void budget_passed(struct budget *budget, const struct bounds *bounds, size_t bytes)
{
    budget->spent.bytes += bytes;
    budget->quiet += bytes;
    for (size_t i = 0; i < bounds->len; i++)
        use_of(budget, bounds->items[i])->bytes += bytes;
}

/* --- refusals --- */

static bool refuse_spent(struct verdict *verdict, enum field_type type, uint64_t most, const char *what)
{
    autotext struct text shown = TEXT_NONE;

    form_amount_show(type, most, &shown);
    verdict_refuse(verdict, REASON_BUDGET, "the budget of %s %s is spent (network.budget.%s)",
                   text_string(&shown), what, what);
    return false;
}

bool budget_has_bytes(const struct budget *budget, struct verdict *verdict)
{
    const struct bounds *bounds = &verdict->bounds;

    if (left_of(budget->rules->budget.bytes, budget->spent.bytes) == 0)
        return refuse_spent(verdict, TYPE_BYTES, budget->rules->budget.bytes, "bytes");
    for (size_t i = 0; i < bounds->len; i++) {
        const struct rule *rule = bounds->items[i];
        autotext struct text shown = TEXT_NONE;

        if (left_of(rule->bytes, use_of(budget, rule)->bytes))
            continue;
        form_amount_show(TYPE_BYTES, rule->bytes, &shown);
        verdict_refuse(verdict, REASON_BUDGET, "%s allows %s bytes to and from %s, and they are spent",
                       place_of(rule), text_string(&shown), verdict->host.text);
        return false;
    }
    return true;
}

static uint64_t period_of(const struct rule *rule)
{
    return rule->rate.seconds * 1000000ULL;
}

void budget_spend_rates(struct budget *budget, uint64_t now_us)
{
    for (size_t i = 0; i < budget->rules->list.len; i++) {
        const struct rule *rule = &budget->rules->list.items[i];

        if (!rule->rate.requests)
            continue;
        budget->uses[i].since = now_us;
        budget->uses[i].requests = rule->rate.requests;
    }
}

/* Counted anew in each second, or each minute, of which the first begins with the first request. */
static bool has_rate(struct budget *budget, const struct rule *rule, struct verdict *verdict, uint64_t now_us)
{
    struct budget_use *use = use_of(budget, rule);
    uint64_t period = period_of(rule);

    if (!use->requests || now_us >= use->since + period) {
        use->since = now_us;
        use->requests = 0;
    }
    if (use->requests < rule->rate.requests)
        return true;
    verdict_refuse(verdict, REASON_RATE, "%s allows %u requests a %s to %s, and there were more",
                   place_of(rule), rule->rate.requests, rule->rate.seconds == 1 ? "second" : "minute",
                   verdict->host.text);
    verdict->retry_s = (uint32_t)((use->since + period - now_us + 999999) / 1000000);
    return false;
}

bool budget_request(struct budget *budget, struct verdict *verdict, uint64_t now_us)
{
    const struct bounds *bounds = &verdict->bounds;
    uint64_t most = budget->rules->budget.requests;

    if (left_of(most, budget->spent.requests) == 0)
        return refuse_spent(verdict, TYPE_NUMBER, most, "requests");
    if (!budget_has_bytes(budget, verdict))
        return false;
    for (size_t i = 0; i < bounds->len; i++)
        if (bounds->items[i]->rate.requests && !has_rate(budget, bounds->items[i], verdict, now_us))
            return false;
    for (size_t i = 0; i < bounds->len; i++)
        use_of(budget, bounds->items[i])->requests++;
    budget->spent.requests++;
    return true;
}

bool budget_connection(struct budget *budget, struct verdict *verdict)
{
    uint64_t most = budget->rules->budget.connections;

    if (left_of(most, budget->spent.connections) == 0)
        return refuse_spent(verdict, TYPE_NUMBER, most, "connections");
    budget->spent.connections++;
    return true;
}
