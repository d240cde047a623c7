#include "gateway/rules.h"

#include "base/own.h"
#include "base/text.h"
#include "spec/rule_path.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void rules_add(struct rules *rules, const struct rule_list *more)
{
    for (size_t i = 0; i < more->len; i++)
        *array_add(&rules->list) = rule_copy(&more->items[i]);
}

void rules_init(struct rules *rules, enum network_mode mode, const struct rule_list *list)
{
    *rules = (struct rules){ .mode = mode };
    rules_add(rules, list);
}

void rules_add_own(struct rules *rules, const struct address *address)
{
    *array_add(&rules->own) = *address;
}

void rules_free(struct rules *rules)
{
    rule_list_free(&rules->list);
    free(rules->own.items);
    *rules = RULES_NONE;
}

/* Which rules have a question */

/* How far a rule and a question agree, the least first. */
enum agreement { AGREE_NOT, AGREE_HOST, AGREE_PORT, AGREE_METHOD, AGREE_ALL };

/* What is asked, in the forms that rules are compared with. */
struct asked {
    const struct hostname *host;
    uint16_t port;
    const char *method; /* NULL: not seen */
    const char *path;   /* NULL: not seen */
    bool path_odd;      /* seen, and to be read in more than one way */
    bool overridden;    /* as the question says */
};

/* Some servers take /Admin/ for /admin, and "delete" for DELETE.  So to a rule that denies they are the same,
 * and to one that allows they are not. */
static bool has_path(const struct rule *rule, const struct asked *asked)
{
    bool (*matches)(const char *, const char *) = rule->action == RULE_DENY ? path_may_match : path_matches;

    for (size_t i = 0; i < rule->paths.len; i++)
        if (matches(rule->paths.items[i], asked->path))
            return true;
    return false;
}

static bool has_method(const struct rule *rule, const char *method)
{
    for (size_t i = 0; rule->action == RULE_DENY && i < rule->methods.len; i++)
        if (strcasecmp(rule->methods.items[i], method) == 0)
            return true;
    return strings_have(&rule->methods, method);
}

/* A part of the request that was not seen yet agrees with what allows, since it is asked again when it is seen,
 * and not with what denies.  What can be read in two ways is the other way round. */
static enum agreement agree(const struct rule *rule, const struct asked *asked)
{
    bool allows = rule->action == RULE_ALLOW;

    if (!hostname_matches(rule->host, asked->host))
        return AGREE_NOT;
    if (!rule_has_port(rule, asked->port))
        return AGREE_HOST;
    if (asked->overridden && (rule->methods.len || rule->paths.len))
        return allows ? AGREE_PORT : AGREE_ALL;
    if (rule->methods.len && (asked->method ? !has_method(rule, asked->method) : !allows))
        return AGREE_PORT;
    if (!rule->paths.len)
        return AGREE_ALL;
    if (asked->path_odd)
        return allows ? AGREE_METHOD : AGREE_ALL;
    if (asked->path ? !has_path(rule, asked) : !allows)
        return AGREE_METHOD;
    return AGREE_ALL;
}

/* Which of two rules that allow the same decides how it is dialled: the one with a pinned address, then the one
 * that names the host more exactly, then the one of a registry.  The rest only makes the answer the same in any
 * order. */
static bool is_closer(const struct rule *a, const struct rule *b)
{
    size_t a_len = a->host[0] == '*' ? strlen(a->host) : SIZE_MAX;
    size_t b_len = b->host[0] == '*' ? strlen(b->host) : SIZE_MAX;
    int order;

    if (!a->address != !b->address)
        return a->address != NULL;
    if (a_len != b_len)
        return a_len > b_len;
    order = a->address ? strcmp(a->address, b->address) : 0;
    if (order != 0)
        return order < 0;
    return a->inside && !b->inside;
}

/* The rule with `action` that agrees the most. */
static const struct rule *find(const struct rules *rules, enum rule_action action, const struct asked *asked,
                               enum agreement *agreement)
{
    const struct rule *found = NULL;

    *agreement = AGREE_NOT;
    for (size_t i = 0; i < rules->list.len; i++) {
        const struct rule *rule = &rules->list.items[i];
        enum agreement now = rule->action == action ? agree(rule, asked) : AGREE_NOT;

        if (now > *agreement || (now != AGREE_NOT && now == *agreement && is_closer(rule, found))) {
            *agreement = now;
            found = rule;
        }
    }
    return found;
}

/* Whether a rule for this host and port looks into requests. */
static bool needs_inside(const struct rules *rules, const struct asked *asked)
{
    for (size_t i = 0; i < rules->list.len; i++) {
        const struct rule *rule = &rules->list.items[i];

        if ((rule->methods.len || rule->paths.len) && hostname_matches(rule->host, asked->host) &&
            rule_has_port(rule, asked->port))
            return true;
    }
    return false;
}

/* What stands in a verdict */

static void decide(struct verdict *out, enum reason reason, const struct rule *rule, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void decide(struct verdict *out, enum reason reason, const struct rule *rule, const char *format, ...)
{
    va_list arguments;

    out->allowed = reason == REASON_RULE || reason == REASON_OPEN;
    out->reason = reason;
    out->rule = rule;
    va_start(arguments, format);
    vsnprintf(out->why, sizeof out->why, format, arguments);
    va_end(arguments);
}

static const char *place_of(const struct rule *rule)
{
    return rule->place ? rule->place : "a rule";
}

/* A refusal is read by whoever was refused, who may ask the owner to type what it says: for this machine
 * itself, the local link or what hands out credentials it says nothing. */
static bool may_be_proposed(const struct address *address)
{
    enum address_class class = address_class(address);

    return !address->len || class == ADDRESS_PUBLIC || class == ADDRESS_PRIVATE || class == ADDRESS_RESERVED;
}

/* `cove allow` as a shell takes it.  The usual ports of a name need not be said. */
static void command_for(struct verdict *out, const struct address *pin)
{
    autotext struct text target = TEXT_NONE, command = TEXT_NONE;
    bool usual = out->port == 80 || out->port == 443;
    char shown[ADDRESS_SIZE];

    if (!may_be_proposed(&out->host.address) || (pin && !may_be_proposed(pin)))
        return;
    if (out->host.address.len == 16)
        text_addf(&target, "[%s]", out->host.text);
    else
        text_add(&target, out->host.text);
    if (!usual || hostname_is_address(&out->host))
        text_addf(&target, ":%u", out->port);
    text_add(&command, "cove allow ");
    text_add_shell_word(&command, text_string(&target));
    if (pin) {
        address_show(pin, shown);
        text_addf(&command, " --address %s", shown);
    }
    if (command.len < sizeof out->command)
        memcpy(out->command, command.data, command.len + 1);
}

static bool is_own(const struct rules *rules, const struct address *address)
{
    for (size_t i = 0; i < rules->own.len; i++)
        if (address_same(&rules->own.items[i], address))
            return true;
    return false;
}

/* The class that counts: an address of this machine is one, however public or private it is. */
static enum address_class class_of(const struct rules *rules, const struct address *address)
{
    return is_own(rules, address) ? ADDRESS_LOOPBACK : address_class(address);
}

/* The verdict */

static void allow_by_rule(const struct rule *rule, struct verdict *out)
{
    if (hostname_is_address(&out->host))
        out->pinned = out->host.address;
    else if (rule->address)
        (void)address_read(rule->address, strlen(rule->address), &out->pinned);
    decide(out, REASON_RULE, rule, "%s allows %s at port %u", place_of(rule), out->host.text, out->port);
    if (!hostname_is_address(&out->host) && !out->pinned.len && hostname_is_local(&out->host))
        decide(out, REASON_LOCAL, rule,
               "%s means another machine everywhere: a rule for it must give its address (%s does not)",
               out->host.text, place_of(rule));
}

static void allow_by_mode(const struct rules *rules, struct verdict *out)
{
    enum address_class class = class_of(rules, &out->host.address);

    if (!hostname_is_address(&out->host) && hostname_is_local(&out->host)) {
        decide(out, REASON_LOCAL, NULL, "%s means another machine everywhere, and no rule gives its address",
               out->host.text);
    } else if (hostname_is_address(&out->host) && class != ADDRESS_PUBLIC) {
        decide(out, REASON_ADDRESS, NULL, "%s is %s, which is closed also where the network is open",
               out->host.text, address_class_name(class));
        command_for(out, NULL);
    } else {
        out->pinned = out->host.address;
        decide(out, REASON_OPEN, NULL, "the network is open (network.mode)");
    }
}

/* No rule allows it: which part of the nearest one is in the way? */
static void refuse_missing(const struct rule *nearest, enum agreement agreement, const struct asked *asked,
                           struct verdict *out)
{
    const char *host = out->host.text;

    switch (agreement) {
    case AGREE_METHOD:
        decide(out, REASON_PATH, nearest, "%s allows only some paths of %s, and %s is none of them",
               place_of(nearest), host, asked->path_odd ? "one that can be read in two ways" : "this");
        return;
    case AGREE_PORT:
        decide(out, REASON_METHOD, nearest, "%s allows %s at port %u, but not %s", place_of(nearest), host,
               out->port, asked->overridden ? "with a field that names another method or path" : "the method");
        return;
    case AGREE_HOST:
        decide(out, REASON_PORT, nearest, "%s allows %s, but not at port %u", place_of(nearest), host,
               out->port);
        break;
    case AGREE_NOT:
    case AGREE_ALL:
        decide(out, REASON_NO_RULE, NULL, "no rule allows %s at port %u", host, out->port);
    }
    if (hostname_is_address(&out->host) || !hostname_is_local(&out->host))
        command_for(out, NULL);
}

static void judge(const struct rules *rules, const struct asked *asked, struct verdict *out)
{
    enum agreement agreement;
    const struct rule *denies = find(rules, RULE_DENY, asked, &agreement);

    if (rules->mode == NETWORK_NONE) {
        decide(out, REASON_NONE, NULL, "this sandbox has no network (network.mode: none)");
        return;
    }
    if (agreement == AGREE_ALL) {
        decide(out, REASON_DENIED, denies, "%s denies %s at port %u", place_of(denies), out->host.text,
               out->port);
        return;
    }

    const struct rule *allows = find(rules, RULE_ALLOW, asked, &agreement);

    if (agreement == AGREE_ALL)
        allow_by_rule(allows, out);
    else if (rules->mode == NETWORK_OPEN)
        allow_by_mode(rules, out);
    else
        refuse_missing(allows, agreement, asked, out);
    out->inspect = out->allowed && needs_inside(rules, asked);
}

static void refuse_spelling(const struct question *question, const char *why, struct verdict *out)
{
    enum { SHOWN = 64 };
    autofree char *part = text_format("%.*s", (int)(question->host_len < SHOWN ? question->host_len : SHOWN),
                                      question->host_len ? question->host : "");
    autotext struct text shown = TEXT_NONE;

    text_add_inert(&shown, part);
    decide(out, REASON_SPELLING, NULL, "the host \"%s\" %s", text_string(&shown), why);
}

void rules_verdict(const struct rules *rules, const struct question *question, struct verdict *out)
{
    autotext struct text path = TEXT_NONE;
    const char *why;

    *out = (struct verdict){ .port = question->port };
    why = hostname_read(question->host, question->host_len, &out->host);
    if (why) {
        refuse_spelling(question, why, out);
        return;
    }

    bool odd = question->path && !path_plain(question->path, &path);
    const struct asked asked = {
        &out->host, question->port,      question->method, question->path && !odd ? text_string(&path) : NULL,
        odd,        question->overridden
    };

    judge(rules, &asked, out);
}

bool rules_upstream(const struct rules *rules, const struct verdict *allowed, const struct address *address,
                    struct verdict *out)
{
    enum address_class class = class_of(rules, address);
    bool may = allowed->pinned.len ? address_same(&allowed->pinned, address)
                                   : class == ADDRESS_PUBLIC ||
                                         (class == ADDRESS_PRIVATE && allowed->rule && allowed->rule->inside);
    char shown[ADDRESS_SIZE];

    if (allowed->allowed && may)
        return true;
    *out = *allowed;
    out->pinned = ADDRESS_NONE;
    address_show(address, shown);
    if (allowed->pinned.len)
        decide(out, REASON_ADDRESS, allowed->rule, "%s leads to %s, not to the address that %s gives",
               out->host.text, shown, allowed->rule ? place_of(allowed->rule) : "the question");
    else
        decide(out, REASON_ADDRESS, allowed->rule, "%s leads to %s, %s; only a rule with that address opens it",
               out->host.text, shown, address_class_name(class));
    if (!allowed->pinned.len && class != ADDRESS_LOOPBACK) /* nor this machine's own, whatever they look like */
        command_for(out, address);
    return false;
}
