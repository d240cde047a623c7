#include "cli/policy_explain.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "cli/context.h"
#include "gateway/registries.h"
#include "gateway/rules.h"
#include "gateway/url.h"
#include "spec/fields.h"
#include "spec/node.h"
#include "spec/rule_forms.h"

#include <stdio.h>
#include <string.h>

static const char *const reason_names[] = {
    [REASON_RULE] = "rule",       [REASON_OPEN] = "open",         [REASON_AUDIT] = "audit",
    [REASON_NONE] = "none",       [REASON_SPELLING] = "spelling", [REASON_LOCAL] = "local",
    [REASON_NO_RULE] = "no-rule", [REASON_PORT] = "port",         [REASON_DENIED] = "denied",
    [REASON_METHOD] = "method",   [REASON_PATH] = "path",         [REASON_ADDRESS] = "address",
    [REASON_MOCK] = "mock",       [REASON_REPLAY] = "replay",     [REASON_UNRECORDED] = "unrecorded",
    [REASON_CACHE] = "cache",
};

/* What the answers come from. */
struct explaining {
    struct rules rules, wider; /* wider: without the repository, if it narrows the network */
    const char *narrowed;      /* where it does so; NULL: nowhere */
    const char *method;        /* that is asked for; NULL: any */
};

struct explained {
    struct verdict verdict;
    bool partly; /* only some of the requests that may be meant */
};

/* What localhost means inside: there may be a service of the host. */
static void judge_loopback(const struct rules *rules, const struct question *question, struct verdict *out)
{
    static const char address[] = "127.0.0.1";
    struct question instead = *question;
    struct verdict verdict;

    instead.host = address;
    instead.host_len = strlen(address);
    rules_verdict(rules, &instead, &verdict);
    if (verdict.allowed)
        *out = verdict;
}

/* What a repository leaves out no `cove allow` opens. */
static void blame_repository(const struct explaining *explaining, const struct question *question,
                             struct verdict *out)
{
    struct verdict wider;

    if (out->allowed || out->reason == REASON_DENIED || !explaining->narrowed)
        return;
    rules_verdict(&explaining->wider, question, &wider);
    if (wider.allowed)
        verdict_refuse(out, out->reason, "%s leaves it out (%s)", explaining->narrowed, wider.why);
}

static void judge_question(const struct explaining *explaining, const struct question *question,
                           struct explained *out)
{
    struct verdict *verdict = &out->verdict;

    rules_verdict(&explaining->rules, question, verdict);
    if (!verdict->allowed && strcmp(verdict->host.text, "localhost") == 0)
        judge_loopback(&explaining->rules, question, verdict);
    blame_repository(explaining, question, verdict);
    out->partly =
        verdict->allowed && verdict->rule &&
        ((verdict->rule->methods.len && !question->method) || (verdict->rule->paths.len && !question->path));
}

/* A URL, or HOST[:PORT] as in a rule; then it is for port 443 and any path. */
static int judge(const struct explaining *explaining, const char *word, struct explained *out,
                 struct error *err)
{
    autofree char *text = strstr(word, "://") ? text_copy(word) : text_format("https://%s", word);
    struct url url;
    const char *why = url_read(text, &url);

    if (why) {
        autotext struct text shown = TEXT_NONE;

        node_show_text(word, &shown);
        return error_set(err, ERROR_INVALID, "%s %s", text_string(&shown), why);
    }

    bool whole = strchr(strstr(text, "://") + strlen("://"), '/') != NULL;
    const struct question question = { .host = url.host.text,
                                       .host_len = strlen(url.host.text),
                                       .port = url.port,
                                       .method = explaining->method,
                                       .path = whole ? url.path : NULL };

    judge_question(explaining, &question, out);
    return 0;
}

static bool is_loopback(const struct hostname *host)
{
    return hostname_is_address(host) ? address_class(&host->address) == ADDRESS_LOOPBACK
                                     : strcmp(host->text, "localhost") == 0;
}

static void print_text(const char *word, const struct explained *explained)
{
    const struct verdict *verdict = &explained->verdict;
    autotext struct text text = TEXT_NONE;

    text_add_inert(&text, word);
    text_addf(&text, ": %s%s: %s\n",
              verdict->reason == REASON_MOCK ? "mocked"
              : verdict->allowed             ? "allowed"
                                             : "refused",
              explained->partly ? " in part" : "", verdict->why);
    if (verdict->rule) {
        text_add(&text, "  rule: ");
        rule_show(verdict->rule, &text);
        text_add(&text, "\n");
    }
    if (verdict->reason == REASON_MOCK)
        text_add(&text, "  nothing leaves: Cove answers by itself\n");
    else if (verdict->allowed && !verdict->pinned.len)
        text_addf(&text, "  if it leads to %s\n",
                  verdict->rule && verdict->rule->inside ? "a public address or one of a private network"
                                                         : "a public address that is not this machine's own");
    if (verdict->command[0])
        text_addf(&text, "  to allow it: %s\n", verdict->command);
    if (!verdict->allowed && is_loopback(&verdict->host))
        text_addf(&text, "  to reach a service of this machine there: --host-service %u\n", verdict->port);
    fputs(text_string(&text), stdout);
}

static void add_json(const char *word, const struct explained *explained, struct node *list)
{
    const struct verdict *verdict = &explained->verdict;
    struct node *map = node_add(list, NULL, NODE_MAP, NULL);
    autofree char *port = text_format("%u", verdict->port);
    autotext struct text rule = TEXT_NONE;

    if (verdict->rule)
        rule_show(verdict->rule, &rule);
    node_add_bytes(map, "url", word);
    node_add(map, "host", NODE_STRING, verdict->host.text);
    node_add(map, "port", NODE_NUMBER, port);
    node_add(map, "allowed", NODE_BOOL, verdict->allowed ? "true" : "false");
    node_add(map, "partly", NODE_BOOL, explained->partly ? "true" : "false");
    node_add(map, "reason", NODE_STRING, reason_names[verdict->reason]);
    node_add(map, "why", NODE_STRING, verdict->why);
    node_add(map, "rule", verdict->rule ? NODE_STRING : NODE_NULL, verdict->rule ? text_string(&rule) : NULL);
    node_add(map, "place", verdict->rule && verdict->rule->place ? NODE_STRING : NODE_NULL,
             verdict->rule ? verdict->rule->place : NULL);
    node_add(map, "command", verdict->command[0] ? NODE_STRING : NODE_NULL,
             verdict->command[0] ? verdict->command : NULL);
}

static void print_json(struct node *root)
{
    autotext struct text text = TEXT_NONE;

    node_write_json(root, &text);
    printf("%s\n", text_string(&text));
}

static int explain_all(const struct context *context, const struct explaining *explaining, struct error *err)
{
    const struct strings *words = &context->options.words;
    autonode struct node root = { .kind = NODE_LIST };
    int refused = 0;

    for (size_t i = 0; i < words->len; i++) {
        struct explained explained = { 0 };

        if (judge(explaining, words->items[i], &explained, err) < 0)
            return -1;
        refused |= !explained.verdict.allowed;
        if (context->options.run.json)
            add_json(words->items[i], &explained, &root);
        else
            print_text(words->items[i], &explained);
    }
    if (context->options.run.json)
        print_json(&root);
    return refused;
}

static const char *find_narrowed(const struct spec_origins *origins)
{
    for (size_t i = 0; i < origins->len; i++) {
        const struct origin *origin = &origins->items[i];

        if (origin->layer == LAYER_REPOSITORY && origin->effect == ORIGIN_NARROWS &&
            origin->field >= FIELD_NETWORK && origin->field <= FIELD_REGISTRIES_FROM)
            return origin->place;
    }
    return NULL;
}

/* As if there were no repository. */
static int read_wider(const struct context *context, const struct registry_places *places, struct rules *out,
                      struct error *err)
{
    const struct host *host = &context->host;
    autoorigins struct spec_origins origins = SPEC_ORIGINS_NONE;
    autostrings struct strings notes = STRINGS_NONE;
    autospec struct spec spec = SPEC_NONE;
    autofree char *owner_file = NULL;
    struct spec_sources sources;

    spec_sources_usual(&sources, host->home, host->cwd, host->uid, host->environ, &owner_file);
    if (spec_read(&context->options.spec, &sources, &spec, &origins, err) < 0)
        return -1;
    (void)rules_of_spec(&spec, places, out, &notes);
    return 0;
}

int policy_explain(const struct context *context, struct error *err)
{
    const struct registry_places places = context_registries(context);
    autostrings struct strings notes = STRINGS_NONE;
    struct explaining explaining = { .narrowed = find_narrowed(&context->origins),
                                     .method = context->options.run.method };
    int result = explaining.narrowed ? read_wider(context, &places, &explaining.wider, err) : 0;

    if (result < 0)
        return -1;
    const char *why = rules_of_spec(&context->spec, &places, &explaining.rules, &notes);

    if (why)
        strings_take(&notes, text_format("network.upstream-proxy: the proxy %s; no sandbox starts so", why));
    registries_hints(&places, &explaining.rules.hints);
    result = explain_all(context, &explaining, err);
    for (size_t i = 0; i < notes.len && result >= 0 && !context->options.run.json; i++)
        printf("# %s\n", notes.items[i]);
    rules_free(&explaining.rules);
    rules_free(&explaining.wider);
    return result;
}
