/* How one layer narrows what another says about the network.
 *
 * A layer that says network.rules says all that may be reached: only what one of its rules allows is left of
 * the layer before, a network that was open has rules again, and registries and services of the host that it
 * does not name are none.  What it denies is denied, and what it mocks is mocked: to layers that is the same,
 * since nothing leaves, so both come through every ceiling and are added to what is below one.  A layer that
 * says network.mode: open leaves all public names and addresses.
 *
 * A pinned address is a grant of its own: it must be the administrator's as well.  A repository cannot say one,
 * so a host that it leaves keeps the owner's.  Methods and paths are those that
 * both have.  Whom the ceiling has vouch for a host, does; of rates and bytes the least holds, and what was one
 * rule's is counted together where several are left of it (RULE_COUNT): to layers that is as a denial. */

#include "spec/combine_network.h"

#include "base/hostname.h"
#include "base/text.h"
#include "spec/layer.h"
#include "spec/rule_path.h"

#include <stdlib.h>
#include <string.h>

/* A ceiling with many rules below one wide rule leaves as many of it.  What is beyond this bound is not left:
 * that is the narrower way. */
enum { RULES_MAX = 4096 };

static bool is_open(const struct layer *ceiling)
{
    return ceiling->said[FIELD_NETWORK] && ceiling->values.network == NETWORK_OPEN;
}

/* Whether the ceiling's rules are all that may be reached. */
static bool bounds_hosts(const struct layer *ceiling)
{
    return ceiling->said[FIELD_RULES] && !is_open(ceiling);
}

/* 0 stands for 80 and 443. */
static bool ports_within(uint16_t inner, uint16_t outer)
{
    return inner == outer || (outer == 0 && (inner == 80 || inner == 443));
}

static bool same_word(const char *inner, const char *outer)
{
    return strcmp(inner, outer) == 0;
}

typedef bool word_within(const char *inner, const char *outer);

static bool has_within(const struct strings *outer, const char *inner, word_within *within)
{
    for (size_t i = 0; i < outer->len; i++)
        if (within(inner, outer->items[i]))
            return true;
    return false;
}

/* None stands for all. */
static bool words_within(const struct strings *inner, const struct strings *outer, word_within *within)
{
    if (outer->len == 0)
        return true;
    for (size_t i = 0; i < inner->len; i++)
        if (!has_within(outer, inner->items[i], within))
            return false;
    return inner->len > 0;
}

/* What both have, as the narrower of them says it; false: nothing.  Of two paths that only overlap nothing is
 * left: that is the narrower way. */
static bool common_words(const struct strings *a, const struct strings *b, word_within *within,
                         struct strings *out)
{
    struct strings common = STRINGS_NONE;

    for (size_t i = 0; i < a->len; i++)
        if (b->len == 0 || has_within(b, a->items[i], within))
            strings_add(&common, a->items[i]);
    for (size_t i = 0; i < b->len; i++)
        if (a->len == 0 || has_within(a, b->items[i], within))
            strings_add(&common, b->items[i]);
    strings_sort(&common);
    strings_free(out);
    *out = common;
    return common.len || (a->len == 0 && b->len == 0);
}

static bool covers(const struct rule *outer, const struct rule *inner)
{
    return hostname_pattern_within(inner->host, outer->host) && ports_within(inner->port, outer->port) &&
           words_within(&inner->methods, &outer->methods, same_word) &&
           words_within(&inner->paths, &outer->paths, path_pattern_within);
}

/* Whether the address that a rule pins, if any, is left by one of the ceiling's. */
static bool leaves_pin(const struct layer *ceiling, const struct rule *bound, const struct rule *rule)
{
    return !rule->address || ceiling->kind == LAYER_REPOSITORY ||
           (bound->address && strcmp(rule->address, bound->address) == 0);
}

/* What both allow, into `out`; false: nothing. */
static bool intersect(const struct rule *rule, const struct layer *ceiling, const struct rule *bound,
                      struct rule *out)
{
    const struct rule *host, *port;

    if (!leaves_pin(ceiling, bound, rule))
        return false;
    if (hostname_pattern_within(rule->host, bound->host))
        host = rule;
    else if (hostname_pattern_within(bound->host, rule->host))
        host = bound;
    else
        return false;
    if (ports_within(rule->port, bound->port))
        port = rule;
    else if (ports_within(bound->port, rule->port))
        port = bound;
    else
        return false;

    *out = rule_copy(rule);
    free(out->host);
    out->host = text_copy(host->host);
    out->port = port->port;
    if (!out->address && bound->address)
        out->address = text_copy(bound->address);
    if (common_words(&rule->methods, &bound->methods, same_word, &out->methods) &&
        common_words(&rule->paths, &bound->paths, path_pattern_within, &out->paths))
        return true;
    rule_free(out);
    return false;
}

/* Whether the rule asks for no more than the public network. */
static bool is_public(const struct rule *rule)
{
    struct address address;

    if (rule->address)
        return false;
    return address_read(rule->host, strlen(rule->host), &address) == ADDRESS_NOT ||
           address_class(&address) == ADDRESS_PUBLIC;
}

static bool is_covered(const struct rule *rule, enum rule_action by, const struct rule_list *bounds)
{
    for (size_t i = 0; i < bounds->len; i++)
        if (bounds->items[i].action == by && covers(&bounds->items[i], rule))
            return true;
    return false;
}

/* Adds what the ceiling leaves of one rule that allows; true if that is all of it. */
static bool add_allowed(const struct rule *rule, const struct layer *ceiling, struct rule_list *out)
{
    const struct rule_list *bounds = &ceiling->values.rules;
    const struct rule *whole = NULL;
    struct rule common;

    if (is_covered(rule, RULE_DENY, bounds))
        return false;
    if (is_open(ceiling) && is_public(rule)) {
        *array_add(out) = rule_copy(rule);
        return true;
    }
    for (size_t i = 0; i < bounds->len; i++) {
        const struct rule *bound = &bounds->items[i];

        if (bound->action == RULE_ALLOW && covers(bound, rule) && leaves_pin(ceiling, bound, rule) &&
            (!whole || !bound->address))
            whole = bound;
    }
    if (whole && intersect(rule, ceiling, whole, &common)) {
        *array_add(out) = common;
        return true;
    }
    for (size_t i = 0; i < bounds->len && out->len < RULES_MAX; i++)
        if (bounds->items[i].action == RULE_ALLOW && intersect(rule, ceiling, &bounds->items[i], &common))
            *array_add(out) = common;
    return false;
}

/* True if somebody else had been to vouch for it. */
static bool hold_ca(struct rule *rule, const struct rule *bound)
{
    bool same = rule->ca && bound->ca && strcmp(rule->ca, bound->ca) == 0;
    bool other = rule->ca && bound->ca && !same;

    if (bound->ca && !same) {
        free(rule->ca);
        rule->ca = text_copy(bound->ca);
    }
    return other;
}

/* Of the same average the ceiling's. */
static bool hold_rate(struct rule *rule, const struct rule *bound)
{
    bool had = rule->rate.requests != 0;

    if (!bound->rate.requests || (had && (uint64_t)rule->rate.requests * bound->rate.seconds <
                                             (uint64_t)bound->rate.requests * rule->rate.seconds))
        return false;

    bool less =
        had && (rule->rate.requests != bound->rate.requests || rule->rate.seconds != bound->rate.seconds);

    rule->rate = bound->rate;
    return less;
}

static bool hold_bytes(struct rule *rule, const struct rule *bound)
{
    bool less = bound->bytes && rule->bytes > bound->bytes;

    if (bound->bytes && (less || !rule->bytes))
        rule->bytes = bound->bytes;
    return less;
}

/* What holds for whoever is allowed the host by the ceiling, whatever they say: true if they said more. */
static bool hold(struct rule *rule, const struct rule_list *bounds)
{
    bool changed = false;

    for (size_t i = 0; rule->action == RULE_ALLOW && i < bounds->len; i++) {
        const struct rule *bound = &bounds->items[i];

        if (bound->action != RULE_ALLOW || !hostname_pattern_within(rule->host, bound->host) ||
            !ports_within(rule->port, bound->port))
            continue;
        changed |= hold_ca(rule, bound);
        changed |= hold_rate(rule, bound);
        changed |= hold_bytes(rule, bound);
    }
    return changed;
}

/* Who vouches for a host does so for all rules that have it: it must not go with the one that says it. */
static void spread_ca(struct rule_list *rules)
{
    for (size_t i = 0; i < rules->len; i++)
        for (size_t k = 0; k < rules->len; k++)
            if (rules->items[i].action == RULE_ALLOW && rules->items[k].action == RULE_ALLOW &&
                !rules->items[i].ca && rules->items[k].ca &&
                hostname_pattern_within(rules->items[i].host, rules->items[k].host) &&
                ports_within(rules->items[i].port, rules->items[k].port))
                rules->items[i].ca = text_copy(rules->items[k].ca);
}

static bool is_bounded(const struct rule *rule)
{
    return rule->rate.requests || rule->bytes;
}

/* Counted as it is already: another bound is another rule. */
static bool is_counted(const struct rule *rule, const struct rule_list *by)
{
    for (size_t i = 0; i < by->len; i++) {
        const struct rule *other = &by->items[i];

        if (other->action == RULE_COUNT && covers(other, rule) && covers(rule, other) &&
            other->rate.requests == rule->rate.requests && other->rate.seconds == rule->rate.seconds &&
            other->bytes == rule->bytes)
            return true;
    }
    return false;
}

/* Of one rule several are left, each with its bound: what they come to together is counted as before. */
static void count_together(const struct rule *rule, struct rule_list *out)
{
    if (is_counted(rule, out))
        return;
    struct rule copy = rule_copy(rule);

    free(copy.address);
    free(copy.ca);
    copy.address = copy.ca = NULL;
    copy.action = RULE_COUNT;
    *array_add(out) = copy;
}

/* How many of the rules that are left a bound of the ceiling's holds for. */
static size_t held_by(const struct rule *bound, const struct rule_list *rules)
{
    size_t held = 0;

    for (size_t i = 0; i < rules->len; i++)
        held += rules->items[i].action == RULE_ALLOW &&
                hostname_pattern_within(rules->items[i].host, bound->host) &&
                ports_within(rules->items[i].port, bound->port);
    return held;
}

/* Adds what the ceiling counts of several rules together. */
static void add_counts(const struct rule_list *bounds, struct rule_list *rules)
{
    for (size_t i = 0; i < bounds->len; i++)
        if (bounds->items[i].action == RULE_ALLOW && is_bounded(&bounds->items[i]) &&
            held_by(&bounds->items[i], rules) > 1)
            count_together(&bounds->items[i], rules);
}

static bool narrow_allowed(const struct layer *ceiling, struct rule_list *rules)
{
    struct rule_list kept = RULE_LIST_NONE;
    bool changed = false;

    if (!ceiling->said[FIELD_RULES] && !is_open(ceiling))
        return false;
    spread_ca(rules);
    for (size_t i = 0; i < rules->len; i++) {
        const struct rule *rule = &rules->items[i];
        size_t before = kept.len;

        if (rule->action != RULE_ALLOW)
            *array_add(&kept) = rule_copy(rule);
        else
            changed |= !add_allowed(rule, ceiling, &kept);
        if (is_bounded(rule) && kept.len > before + 1)
            count_together(rule, &kept);
    }
    add_counts(&ceiling->values.rules, &kept);
    for (size_t i = 0; i < kept.len; i++)
        changed |= hold(&kept.items[i], &ceiling->values.rules);
    rule_list_free(rules);
    *rules = kept;
    return changed;
}

/* Two patterns may have something in common unless neither is one. */
static bool path_meets(const char *a, const char *b)
{
    return path_pattern_within(a, b) || path_pattern_within(b, a) || (strchr(a, '*') && strchr(b, '*'));
}

static bool words_meet(const struct strings *a, const struct strings *b, word_within *meets)
{
    for (size_t i = 0; i < a->len; i++)
        if (has_within(b, a->items[i], meets))
            return true;
    return a->len == 0 || b->len == 0;
}

/* Whether a request could be for both: which of two mocks answers is not for a repository to say. */
static bool meets_mock(const struct rule *rule, const struct rule_list *others)
{
    for (size_t i = 0; i < others->len; i++) {
        const struct rule *other = &others->items[i];
        bool hosts = hostname_pattern_within(rule->host, other->host) ||
                     hostname_pattern_within(other->host, rule->host);
        bool ports = ports_within(rule->port, other->port) || ports_within(other->port, rule->port);

        if (other->action == RULE_MOCK && hosts && ports &&
            words_meet(&rule->methods, &other->methods, same_word) &&
            words_meet(&rule->paths, &other->paths, path_meets))
            return true;
    }
    return false;
}

static bool is_there_already(const struct layer *ceiling, const struct rule *rule,
                             const struct rule_list *rules)
{
    if (rule->action == RULE_MOCK && ceiling->kind == LAYER_REPOSITORY)
        return meets_mock(rule, rules);
    return rule->action == RULE_COUNT ? is_counted(rule, rules) : is_covered(rule, rule->action, rules);
}

static bool add_denials(const struct layer *ceiling, struct rule_list *rules)
{
    size_t before = rules->len; /* of one layer no rule is in another's way */
    bool changed = false;

    for (size_t i = 0; ceiling->said[FIELD_RULES] && i < ceiling->values.rules.len; i++) {
        const struct rule *rule = &ceiling->values.rules.items[i];
        const struct rule_list said = { rules->items, before, before };

        if (rule->action == RULE_ALLOW || is_there_already(ceiling, rule, &said))
            continue;
        *array_add(rules) = rule_copy(rule);
        changed = true;
    }
    return changed;
}

void combine_network_denials(const struct layer *ceiling, struct spec *spec)
{
    (void)add_denials(ceiling, &spec->rules);
}

/* Registries, or services of the host: what else may be reached, by name. */
static const struct field *narrow_names(const struct field *field, const struct layer *ceiling,
                                        struct strings *names)
{
    autostrings struct strings kept = STRINGS_NONE;
    bool said = ceiling->said[field - fields];
    size_t before = names->len;

    if (!said && !bounds_hosts(ceiling))
        return NULL;
    for (size_t i = 0; i < names->len; i++)
        if (said && strings_have(field_of_const(field, &ceiling->values), names->items[i]))
            strings_add(&kept, names->items[i]);
    strings_free(names);
    strings_copy(names, &kept);
    return names->len == before ? NULL : said ? field : &fields[FIELD_RULES];
}

static const struct field *narrow_mode(const struct layer *ceiling, enum network_mode *mode)
{
    bool said = ceiling->said[FIELD_NETWORK];
    enum network_mode bound = said                         ? ceiling->values.network
                              : ceiling->said[FIELD_RULES] ? NETWORK_RULES
                                                           : NETWORK_OPEN;

    if (*mode <= bound)
        return NULL;
    *mode = bound;
    return said ? &fields[FIELD_NETWORK] : &fields[FIELD_RULES];
}

static const struct field *narrow_choice(unsigned bound, unsigned *value, const struct field *culprit)
{
    if (bound <= *value)
        return NULL;
    *value = bound;
    return culprit;
}

/* An administrator who names hosts does not leave it to the user's own configuration to name others, unless
 * they say so. */
static const struct field *narrow_source(const struct layer *ceiling, enum registry_source *source)
{
    if (ceiling->said[FIELD_REGISTRIES_FROM])
        return narrow_choice(ceiling->values.registries_from, source, &fields[FIELD_REGISTRIES_FROM]);
    if (ceiling->kind == LAYER_ADMIN && bounds_hosts(ceiling))
        return narrow_choice(REGISTRIES_OF_SYSTEM, source, &fields[FIELD_RULES]);
    return NULL;
}

/* Who may go by a proxy may by that one; a name that is resolved there is not judged by its address here. */
static const struct field *narrow_proxy(const struct layer *ceiling, char **proxy)
{
    const char *bound = ceiling->values.upstream_proxy;

    if (!ceiling->said[FIELD_UPSTREAM_PROXY] || !*proxy || strcmp(*proxy, "none") == 0 ||
        strcmp(*proxy, bound) == 0)
        return NULL;
    free(*proxy);
    *proxy = text_copy("none");
    return &fields[FIELD_UPSTREAM_PROXY];
}

const struct field *combine_network(const struct field *field, const struct layer *ceiling, struct spec *spec)
{
    if (field == &fields[FIELD_NETWORK])
        return narrow_mode(ceiling, &spec->network);
    if (field == &fields[FIELD_REGISTRIES_FROM])
        return narrow_source(ceiling, &spec->registries_from);
    if (field == &fields[FIELD_UPSTREAM_PROXY])
        return narrow_proxy(ceiling, &spec->upstream_proxy);
    if (field == &fields[FIELD_REGISTRIES] || field == &fields[FIELD_HOST_SERVICES])
        return narrow_names(field, ceiling, field_of(field, spec));

    bool changed = narrow_allowed(ceiling, &spec->rules);

    if (add_denials(ceiling, &spec->rules))
        changed = true;
    if (!changed)
        return NULL;
    return ceiling->said[FIELD_RULES] ? &fields[FIELD_RULES] : &fields[FIELD_NETWORK];
}
