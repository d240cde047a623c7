/* How one layer narrows what another says about the network.
 *
 * A layer that says network.rules says all that may be reached: only what one of its rules allows is left of
 * the layer before, a network that was open has rules again, and registries that it does not name are none.
 * What it denies is denied.  A layer that says network.mode: open leaves all public names and addresses.
 *
 * A pinned address is a grant of its own: it must be the ceiling's as well.  Methods and paths are those that
 * both have. */

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

static bool same_pin(const struct rule *a, const struct rule *b)
{
    return a->address && b->address && strcmp(a->address, b->address) == 0;
}

/* What both allow, into `out`; false: nothing. */
static bool intersect(const struct rule *rule, const struct rule *bound, struct rule *out)
{
    const struct rule *host, *port;

    if (rule->address && !same_pin(rule, bound))
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

static bool is_denied(const struct rule *rule, const struct rule_list *bounds)
{
    for (size_t i = 0; i < bounds->len; i++)
        if (bounds->items[i].action == RULE_DENY && covers(&bounds->items[i], rule))
            return true;
    return false;
}

/* Adds what the ceiling leaves of one rule that allows; true if that is all of it. */
static bool add_allowed(const struct rule *rule, const struct layer *ceiling, struct rule_list *out)
{
    const struct rule_list *bounds = &ceiling->values.rules;
    const struct rule *whole = NULL;
    struct rule common;

    if (is_denied(rule, bounds))
        return false;
    if (is_open(ceiling) && is_public(rule)) {
        *array_add(out) = rule_copy(rule);
        return true;
    }
    for (size_t i = 0; i < bounds->len; i++) {
        const struct rule *bound = &bounds->items[i];

        if (bound->action == RULE_ALLOW && covers(bound, rule) && (!rule->address || same_pin(rule, bound)) &&
            (!whole || !bound->address))
            whole = bound;
    }
    if (whole && intersect(rule, whole, &common)) {
        *array_add(out) = common;
        return true;
    }
    for (size_t i = 0; i < bounds->len && out->len < RULES_MAX; i++)
        if (bounds->items[i].action == RULE_ALLOW && intersect(rule, &bounds->items[i], &common))
            *array_add(out) = common;
    return false;
}

static bool narrow_allowed(const struct layer *ceiling, struct rule_list *rules)
{
    struct rule_list kept = RULE_LIST_NONE;
    bool changed = false;

    if (!ceiling->said[FIELD_RULES] && !is_open(ceiling))
        return false;
    for (size_t i = 0; i < rules->len; i++) {
        if (rules->items[i].action == RULE_DENY)
            *array_add(&kept) = rule_copy(&rules->items[i]);
        else
            changed |= !add_allowed(&rules->items[i], ceiling, &kept);
    }
    rule_list_free(rules);
    *rules = kept;
    return changed;
}

static bool add_denials(const struct layer *ceiling, struct rule_list *rules)
{
    bool changed = false;

    for (size_t i = 0; ceiling->said[FIELD_RULES] && i < ceiling->values.rules.len; i++) {
        const struct rule *rule = &ceiling->values.rules.items[i];

        if (rule->action != RULE_DENY || is_denied(rule, rules))
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

static bool narrow_registries(const struct layer *ceiling, struct strings *registries)
{
    autostrings struct strings kept = STRINGS_NONE;
    bool said = ceiling->said[FIELD_REGISTRIES];
    size_t before = registries->len;

    if (!said && !bounds_hosts(ceiling))
        return false;
    for (size_t i = 0; i < registries->len; i++)
        if (said && strings_have(&ceiling->values.registries, registries->items[i]))
            strings_add(&kept, registries->items[i]);
    strings_free(registries);
    strings_copy(registries, &kept);
    return registries->len != before;
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

const struct field *combine_network(const struct field *field, const struct layer *ceiling, struct spec *spec)
{
    if (field == &fields[FIELD_NETWORK])
        return narrow_mode(ceiling, &spec->network);
    if (field == &fields[FIELD_REGISTRIES_FROM])
        return narrow_source(ceiling, &spec->registries_from);
    if (field == &fields[FIELD_REGISTRIES])
        return !narrow_registries(ceiling, &spec->registries) ? NULL
               : ceiling->said[FIELD_REGISTRIES]              ? &fields[FIELD_REGISTRIES]
                                                              : &fields[FIELD_RULES];

    bool changed = narrow_allowed(ceiling, &spec->rules);

    if (add_denials(ceiling, &spec->rules))
        changed = true;
    if (!changed)
        return NULL;
    return ceiling->said[FIELD_RULES] ? &fields[FIELD_RULES] : &fields[FIELD_NETWORK];
}
