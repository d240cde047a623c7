#include "gateway/rules.h"

#include "base/own.h"
#include "base/text.h"
#include "gateway/tape.h"
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
    rule_list_free(&rules->hints);
    proxy_free(&rules->proxy);
    strings_free(&rules->variables);
    free(rules->own.items);
    *rules = RULES_NONE;
}

/* Which rules have a question */

/* How far a rule and a question agree, the least first. */
enum agreement { AGREE_NOT, AGREE_HOST, AGREE_PORT, AGREE_METHOD, AGREE_PATH, AGREE_ALL };

/* What is asked, in the forms that rules are compared with. */
struct asked {
    const struct hostname *host;
    const struct question *question;
    const char *path; /* NULL: not seen */
    bool path_odd;    /* seen, and to be read in more than one way */
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
static bool agrees_method(const struct rule *rule, const char *method)
{
    return !rule->methods.len || (method ? has_method(rule, method) : rule->action != RULE_DENY);
}

static bool agrees_path(const struct rule *rule, const struct asked *asked)
{
    bool allows = rule->action != RULE_DENY;

    if (!rule->paths.len)
        return true;
    if (asked->path_odd)
        return !allows;
    return asked->path ? has_path(rule, asked) : allows;
}

static enum agreement agree(const struct rule *rule, const struct asked *asked)
{
    bool method, path;

    if (!hostname_matches(rule->host, asked->host))
        return AGREE_NOT;
    if (!rule_has_port(rule, asked->question->port))
        return AGREE_HOST;
    if (asked->question->overridden && (rule->methods.len || rule->paths.len))
        return rule->action != RULE_DENY ? AGREE_PORT : AGREE_ALL;
    method = agrees_method(rule, asked->question->method);
    path = agrees_path(rule, asked);
    if (method && path)
        return AGREE_ALL;
    return path ? AGREE_PATH : method ? AGREE_METHOD : AGREE_PORT;
}

/* How exactly a mock names what is asked: a path without a wildcard the most, then by its length, then methods.
 */
static size_t exactness(const struct rule *rule, const struct asked *asked)
{
    size_t most = 0;

    for (size_t i = 0; asked->path && i < rule->paths.len; i++) {
        const char *path = rule->paths.items[i];
        size_t now =
            path_matches(path, asked->path) ? strlen(path) + (strchr(path, '*') ? 0 : SIZE_MAX / 4) : 0;

        most = now > most ? now : most;
    }
    return 2 * most + (rule->methods.len > 0);
}

/* Which of two rules that allow the same decides how it is dialled: the one with a pinned address, then the one
 * that names the host more exactly, then the one of a registry.  The rest only makes the answer the same in any
 * order. */
static bool is_closer(const struct rule *a, const struct rule *b, const struct asked *asked)
{
    size_t a_len = a->host[0] == '*' ? strlen(a->host) : SIZE_MAX;
    size_t b_len = b->host[0] == '*' ? strlen(b->host) : SIZE_MAX;
    int order;

    if (!a->address != !b->address)
        return a->address != NULL;
    if (a_len != b_len)
        return a_len > b_len;
    if (a->action == RULE_MOCK)
        return exactness(a, asked) > exactness(b, asked);
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

        if (now > *agreement || (now != AGREE_NOT && now == *agreement && is_closer(rule, found, asked))) {
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

        if ((rule->methods.len || rule->paths.len || rule->ca || rule->mock || rule->rate.requests) &&
            hostname_matches(rule->host, asked->host) && rule_has_port(rule, asked->question->port))
            return true;
    }
    return false;
}

static bool has_packages(const struct rules *rules, const struct asked *asked)
{
    for (size_t i = 0; i < rules->list.len; i++) {
        const struct rule *rule = &rules->list.items[i];

        if (rule->index && hostname_matches(rule->host, asked->host) &&
            rule_has_port(rule, asked->question->port))
            return true;
    }
    return false;
}

/* Whom to ask about the server: the same for every request to a host and port, whichever rule allows it, since
 * they may share a connection.  Of several the nearest. */
static const struct rule *find_ca(const struct rules *rules, const struct asked *asked)
{
    const struct rule *found = NULL;

    for (size_t i = 0; i < rules->list.len; i++) {
        const struct rule *rule = &rules->list.items[i];

        if (rule->ca && hostname_matches(rule->host, asked->host) &&
            rule_has_port(rule, asked->question->port) && (!found || is_closer(rule, found, asked)))
            found = rule;
    }
    return found;
}

/* What stands in a verdict */

const char *reason_name(enum reason reason)
{
    static const char *const names[REASON_COUNT] = {
        [REASON_RULE] = "rule",       [REASON_OPEN] = "open",         [REASON_AUDIT] = "audit",
        [REASON_NONE] = "no-network", [REASON_SPELLING] = "spelling", [REASON_LOCAL] = "local",
        [REASON_NO_RULE] = "no-rule", [REASON_PORT] = "port",         [REASON_DENIED] = "denied",
        [REASON_METHOD] = "method",   [REASON_PATH] = "path",         [REASON_ADDRESS] = "address",
        [REASON_RATE] = "rate",       [REASON_BUDGET] = "budget",     [REASON_PROTOCOL] = "protocol",
        [REASON_MOCK] = "mock",       [REASON_REPLAY] = "replay",     [REASON_UNRECORDED] = "unrecorded",
        [REASON_CACHE] = "cache",
    };

    return names[reason];
}

void verdict_refuse(struct verdict *verdict, enum reason reason, const char *format, ...)
{
    va_list arguments;

    verdict->allowed = false;
    verdict->reason = reason;
    verdict->command[0] = '\0';
    va_start(arguments, format);
    vsnprintf(verdict->why, sizeof verdict->why, format, arguments);
    va_end(arguments);
}

static void decide(struct verdict *out, enum reason reason, const struct rule *rule, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void decide(struct verdict *out, enum reason reason, const struct rule *rule, const char *format, ...)
{
    va_list arguments;

    out->allowed = reason < REASON_UNRECORDED;
    out->reason = reason;
    out->rule = rule;
    va_start(arguments, format);
    vsnprintf(out->why, sizeof out->why, format, arguments);
    va_end(arguments);
}

static const char *place_of(const struct rule *rule)
{
    return rule && rule->place ? rule->place : "a rule";
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

/* "POST /v1/users", as far as it was seen, up to a character of `end`. */
static void show_part(const struct question *question, const char *end, struct text *out)
{
    enum { SHOWN = 100 };
    const char *path = question->path ? question->path : "";
    size_t len = strcspn(path, end);
    autofree char *part =
        text_format("%s%s%.*s%s", question->method ? question->method : "", question->method && len ? " " : "",
                    (int)(len < SHOWN ? len : SHOWN), path, len > SHOWN ? "..." : "");

    text_add_inert(out, part);
}

/* Without its query, which no rule looks at and which may be secret. */
static void show_request(const struct question *question, struct text *out)
{
    show_part(question, "?#", out);
}

static void refuse_request(const struct rule *nearest, enum agreement agreement, const struct asked *asked,
                           struct verdict *out)
{
    autotext struct text request = TEXT_NONE;

    show_request(asked->question, &request);
    if (asked->question->overridden)
        text_add(&request, " with a field that names another method or path");
    else if (agreement == AGREE_METHOD && asked->path_odd)
        text_add(&request, ", a path that can be read in two ways");
    decide(out, agreement == AGREE_METHOD ? REASON_PATH : REASON_METHOD, nearest,
           "%s %s %s at port %u, but not %s", place_of(nearest), nearest->mock ? "mocks" : "allows",
           out->host.text, out->port, text_string(&request));
}

/* Who asks for a host of a registry will ask for its others. */
static bool propose_registry(const struct rules *rules, struct verdict *out)
{
    for (size_t i = 0; i < rules->hints.len; i++) {
        const struct rule *hint = &rules->hints.items[i];

        if (!hostname_matches(hint->host, &out->host) || !rule_has_port(hint, out->port))
            continue;
        (void)snprintf(out->command, sizeof out->command, "%s%s", VERDICT_REGISTRY, hint->place);
        return true;
    }
    return false;
}

/* No rule allows it: which part of the nearest one is in the way? */
static void refuse_missing(const struct rules *rules, const struct rule *nearest, enum agreement agreement,
                           const struct asked *asked, struct verdict *out)
{
    switch (agreement) {
    case AGREE_PATH:
    case AGREE_METHOD:
    case AGREE_PORT:
        refuse_request(nearest, agreement, asked, out);
        return;
    case AGREE_HOST:
        decide(out, REASON_PORT, nearest, "%s %s %s, but not at port %u", place_of(nearest),
               nearest->mock ? "mocks" : "allows", out->host.text, out->port);
        break;
    case AGREE_NOT:
    case AGREE_ALL:
        decide(out, REASON_NO_RULE, NULL, "no rule allows %s at port %u", out->host.text, out->port);
        if (propose_registry(rules, out))
            return;
    }
    if (hostname_is_address(&out->host) || !hostname_is_local(&out->host))
        command_for(out, NULL);
}

/* What an audit lets through: no more than an open network, and it says what would have refused it.  A rule
 * that is for this host and port, but not for the request, leads it to its own address. */
static void allow_by_audit(const struct rules *rules, const struct rule *nearest, enum agreement agreement,
                           const struct asked *asked, struct verdict *out)
{
    refuse_missing(rules, nearest, agreement, asked, out);

    const struct verdict refused = *out;

    out->command[0] = '\0';
    if (agreement >= AGREE_PORT && nearest->action == RULE_ALLOW)
        allow_by_rule(nearest, out);
    else
        allow_by_mode(rules, out);
    if (!out->allowed)
        return;
    /* No rule can allow what is said in two ways. */
    out->without = asked->question->overridden && agreement >= AGREE_PORT ? REASON_PROTOCOL : refused.reason;
    decide(out, REASON_AUDIT, out->rule, "%s", refused.why);
    memcpy(out->command, refused.command, sizeof out->command);
}

static void refuse_denied(const struct rule *denies, const struct question *question, struct verdict *out)
{
    autotext struct text request = TEXT_NONE;

    if (denies->methods.len || denies->paths.len)
        show_request(question, &request);
    decide(out, REASON_DENIED, denies, "%s denies %s%s%s at port %u", place_of(denies), text_string(&request),
           request.len ? " of " : "", out->host.text, out->port);
}

/* A bound of a rule holds for all that it allows, also where another rule allows the same. */
static void find_bounds(const struct rules *rules, const struct asked *asked, struct verdict *out)
{
    for (size_t i = 0; i < rules->list.len; i++) {
        const struct rule *rule = &rules->list.items[i];

        bool counts = rule->action == RULE_ALLOW || rule->action == RULE_COUNT;

        if (!counts || !(rule->rate.requests || rule->bytes) || agree(rule, asked) != AGREE_ALL)
            continue;
        if (out->bounds.len == RULES_BOUNDS) {
            verdict_refuse(out, REASON_BUDGET, "more than %d rules with rate or bytes are for %s", RULES_BOUNDS,
                           out->host.text);
            return;
        }
        out->bounds.items[out->bounds.len++] = rule;
    }
}

/* What was recorded is all there is. */
static void judge_by_tape(const struct tape *tape, const struct question *question, struct verdict *out)
{
    const struct tape_question wanted = { out->host.text, out->port, question->method, question->path };
    autotext struct text asked = TEXT_NONE;

    show_part(question, "", &asked);
    switch (tape_look(tape, &wanted)) {
    case TAPE_HAS:
        decide(out, REASON_REPLAY, NULL, "the record answers for %s at port %u", out->host.text, out->port);
        break;
    case TAPE_NO_HOST:
        decide(out, REASON_UNRECORDED, NULL, "nothing was recorded of %s at port %u", out->host.text,
               out->port);
        break;
    case TAPE_NOTHING:
        decide(out, REASON_UNRECORDED, NULL, "%s was not recorded of %s at port %u", text_string(&asked),
               out->host.text, out->port);
        break;
    case TAPE_NOT_WHOLE:
        decide(out, REASON_UNRECORDED, NULL, "the answer to %s of %s at port %u was not recorded whole",
               text_string(&asked), out->host.text, out->port);
        break;
    }
}

static void judge_unallowed(const struct rules *rules, const struct rule *nearest, enum agreement agreement,
                            const struct asked *asked, struct verdict *out)
{
    if (rules->mode == NETWORK_AUDIT)
        allow_by_audit(rules, nearest, agreement, asked, out);
    else
        refuse_missing(rules, nearest, agreement, asked, out);
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
        refuse_denied(denies, asked->question, out);
        return;
    }

    enum agreement mocked;
    const struct rule *mocks = find(rules, RULE_MOCK, asked, &mocked);
    const struct rule *allows = find(rules, RULE_ALLOW, asked, &agreement);

    if (mocked == AGREE_ALL)
        decide(out, REASON_MOCK, mocks, "%s mocks %s at port %u", place_of(mocks), out->host.text, out->port);
    else if (rules->tape)
        judge_by_tape(rules->tape, asked->question, out);
    else if (agreement == AGREE_ALL)
        allow_by_rule(allows, out);
    else if (rules->mode == NETWORK_OPEN)
        allow_by_mode(rules, out);
    else
        judge_unallowed(rules, mocked > agreement ? mocks : allows, mocked > agreement ? mocked : agreement,
                        asked, out);
    if (out->allowed)
        find_bounds(rules, asked, out);
    out->inspect = out->allowed && (rules->tape || needs_inside(rules, asked));
    out->packages = (out->reason == REASON_RULE || out->reason == REASON_OPEN) && has_packages(rules, asked);
    out->ca = out->allowed ? find_ca(rules, asked) : NULL;
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
    const struct asked asked = { &out->host, question, question->path && !odd ? text_string(&path) : NULL,
                                 odd };

    judge(rules, &asked, out);
}

/* Where a company has its mirror: some give their machines reserved addresses. */
static bool is_somewhere_inside(enum address_class class)
{
    return class == ADDRESS_PRIVATE || class == ADDRESS_RESERVED;
}

bool rules_upstream(const struct rules *rules, const struct verdict *allowed, const struct address *address,
                    struct verdict *out)
{
    enum address_class class = class_of(rules, address);
    bool may = allowed->pinned.len ? address_same(&allowed->pinned, address)
                                   : class == ADDRESS_PUBLIC ||
                                         (is_somewhere_inside(class) && allowed->rule && allowed->rule->inside);
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
