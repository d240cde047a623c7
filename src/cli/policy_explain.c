#include "cli/policy_explain.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "cli/context.h"
#include "gateway/registries.h"
#include "gateway/rules.h"
#include "gateway/url.h"
#include "spec/node.h"
#include "spec/rule_forms.h"

#include <stdio.h>
#include <string.h>

static const char *const reason_names[] = {
    [REASON_RULE] = "rule",         [REASON_OPEN] = "open",       [REASON_NONE] = "none",
    [REASON_SPELLING] = "spelling", [REASON_LOCAL] = "local",     [REASON_NO_RULE] = "no-rule",
    [REASON_PORT] = "port",         [REASON_DENIED] = "denied",   [REASON_METHOD] = "method",
    [REASON_PATH] = "path",         [REASON_ADDRESS] = "address",
};

/* A URL, or HOST[:PORT] as in a rule; then it is for port 443. */
static int judge(const struct rules *rules, const char *word, struct verdict *out, struct error *err)
{
    autofree char *text = strstr(word, "://") ? text_copy(word) : text_format("https://%s", word);
    struct url url;
    const char *why = url_read(text, &url);

    if (why) {
        autotext struct text shown = TEXT_NONE;

        node_show_text(word, &shown);
        return error_set(err, ERROR_INVALID, "%s %s", text_string(&shown), why);
    }

    const struct question question = {
        .host = url.host.text, .host_len = strlen(url.host.text), .port = url.port, .path = url.path
    };

    rules_verdict(rules, &question, out);
    return 0;
}

static void print_text(const char *word, const struct verdict *verdict)
{
    autotext struct text text = TEXT_NONE;

    text_add_inert(&text, word);
    text_addf(&text, ": %s: %s\n", verdict->allowed ? "allowed" : "refused", verdict->why);
    if (verdict->rule) {
        text_add(&text, "  rule: ");
        rule_show(verdict->rule, &text);
        text_add(&text, "\n");
    }
    if (verdict->allowed && !verdict->pinned.len)
        text_addf(&text, "  if it leads to %s\n",
                  verdict->rule && verdict->rule->inside ? "a public address or one of a private network"
                                                         : "a public address that is not this machine's own");
    if (verdict->command[0])
        text_addf(&text, "  to allow it: %s\n", verdict->command);
    fputs(text_string(&text), stdout);
}

static void add_json(const char *word, const struct verdict *verdict, struct node *list)
{
    struct node *map = node_add(list, NULL, NODE_MAP, NULL);
    autofree char *port = text_format("%u", verdict->port);
    autotext struct text rule = TEXT_NONE;

    if (verdict->rule)
        rule_show(verdict->rule, &rule);
    node_add_bytes(map, "url", word);
    node_add(map, "host", NODE_STRING, verdict->host.text);
    node_add(map, "port", NODE_NUMBER, port);
    node_add(map, "allowed", NODE_BOOL, verdict->allowed ? "true" : "false");
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

static int explain_all(const struct context *context, const struct rules *rules, struct error *err)
{
    const struct strings *words = &context->options.words;
    autonode struct node root = { .kind = NODE_LIST };
    int refused = 0;

    for (size_t i = 0; i < words->len; i++) {
        struct verdict verdict = { 0 };

        if (judge(rules, words->items[i], &verdict, err) < 0)
            return -1;
        refused |= !verdict.allowed;
        if (context->options.run.json)
            add_json(words->items[i], &verdict, &root);
        else
            print_text(words->items[i], &verdict);
    }
    if (context->options.run.json)
        print_json(&root);
    return refused;
}

int policy_explain(const struct context *context, struct error *err)
{
    const struct host *host = &context->host;
    const struct registry_places places = { "", host->home, context->workspace.root, host->uid, host->environ };
    autostrings struct strings notes = STRINGS_NONE;
    struct rules rules;
    int result;

    rules_of_spec(&context->spec, &places, &rules, &notes);
    result = explain_all(context, &rules, err);
    for (size_t i = 0; i < notes.len && result >= 0 && !context->options.run.json; i++)
        printf("# %s\n", notes.items[i]);
    rules_free(&rules);
    return result;
}
