#include "gateway/brief.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "gateway/rules.h"
#include "spec/fields.h"
#include "spec/forms.h"
#include "spec/node.h"
#include "spec/rule_forms.h"
#include "tests/support/unit.h"

#include <string.h>

/* As an administrator could write them: a grant so wide is nobody else's. */
static const char *const written[] = {
    "{\"host\":\"example.com\"}",
    "{\"host\":\"*.com\",\"port\":8443}",
    "{\"host\":\"db.internal\",\"port\":5432,\"address\":\"10.0.0.5\"}",
    "{\"host\":\"example.org\",\"action\":\"deny\"}",
    "{\"host\":\"api.example.com\",\"methods\":[\"GET\",\"HEAD\"],\"paths\":[\"/v1/**\",\"/x\"]}",
    "{\"host\":\"2001:db8::1\",\"port\":80}",
    "{\"host\":\"bounded.example\",\"rate\":\"10/s\",\"bytes\":\"5M\"}",
    "{\"host\":\"mocked.example\",\"action\":\"mock\",\"mock\":{\"status\":418,\"body\":\"tea\"}}",
    "{\"host\":\"own.example\",\"ca\":\"-----BEGIN CERTIFICATE-----\\n-----END CERTIFICATE-----\\n\"}",
};

static struct rule rule_of(const char *json)
{
    const struct form_context context = { .places = PLACE_ADMIN, .shown = "/etc/cove/policy.yaml" };
    autotext struct text why = TEXT_NONE;
    autonode struct node node = NODE_NONE;
    const struct node *culprit;
    struct error err;
    struct rule rule;

    assert_int_equal(node_read_json(json, strlen(json), "test", &node, &err), 0);
    assert_true(rule_read_node(&context, &node, &rule, &why, &culprit));
    return rule;
}

static char *shown(const struct rule *rule)
{
    struct text text = TEXT_NONE;

    rule_show(rule, &text);
    text_addf(&text, " %u %s %d %u %s", rule->action, rule->place ? rule->place : "-", rule->inside,
              rule->registry, rule->index ? rule->index : "-");
    return text_steal(&text);
}

static char written_host[] = "index.test", written_place[] = "pip";

static void what_is_told_is_what_is_understood(void **state)
{
    autorules struct rules told = { .mode = NETWORK_RULES }, understood = RULES_NONE;
    autotext struct text brief = TEXT_NONE;
    struct error err;
    uint64_t bytes[ARRAY_LEN(written)];
    struct brief heard;
    struct rule hint = { .host = written_host, .port = 443, .place = written_place };
    const struct rule_list hints = { &hint, 1, 1 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(written); i++)
        *array_add(&told.list) = rule_of(written[i]);
    told.list.items[1].inside = true;
    told.list.items[1].registry = REGISTRY_PIP;
    told.list.items[1].index = text_copy("https://py.example:8443/simple/");
    told.packages = 1ULL << 40;
    free(told.list.items[0].place);
    told.list.items[0].place = NULL;
    told.budget = (struct amounts){ 1, 2, 1ULL << 50 };
    assert_null(proxy_read("http://me:word@proxy.example:3128", NULL, &told.proxy));
    strings_add(&told.proxy.except, "near.example");
    for (size_t i = 0; i < ARRAY_LEN(bytes); i++)
        bytes[i] = i << 40;
    brief_write(&(struct brief){ .generation = 7,
                                 .died = true,
                                 .record_secrets = true,
                                 .sandbox = "abcdefghijkl",
                                 .spent = { 3, 4, 5 },
                                 .bytes = bytes,
                                 .hints = &hints },
                &told, &brief);
    assert_int_equal(brief_read(text_string(&brief), &heard, &understood, &err), 0);
    assert_int_equal(heard.generation, 7);
    assert_true(heard.died);
    assert_true(heard.record_secrets);
    assert_string_equal(heard.sandbox, "abcdefghijkl");
    assert_memory_equal(&heard.spent, (&(struct amounts){ 3, 4, 5 }), sizeof heard.spent);
    assert_memory_equal(&understood.budget, &told.budget, sizeof told.budget);
    assert_true(understood.packages == told.packages);
    assert_memory_equal(heard.bytes, bytes, sizeof bytes);
    free(heard.bytes);
    assert_string_equal(understood.proxy.host.text, "proxy.example");
    assert_int_equal(understood.proxy.port, 3128);
    assert_string_equal(understood.proxy.authorization, told.proxy.authorization);
    assert_int_equal(understood.proxy.except.len, 1);
    assert_int_equal(understood.mode, NETWORK_RULES);
    assert_int_equal(understood.hints.len, 1);
    assert_string_equal(understood.hints.items[0].host, "index.test");
    assert_string_equal(understood.hints.items[0].place, "pip");
    assert_int_equal(understood.hints.items[0].port, 443);
    assert_int_equal(understood.list.len, told.list.len);
    for (size_t i = 0; i < told.list.len; i++) {
        autofree char *one = shown(&told.list.items[i]), *other = shown(&understood.list.items[i]);

        assert_string_equal(one, other);
    }
}

#define NOTHING "{\"bytes\":0,\"requests\":0,\"connections\":0}"
#define HEAD(mode)                                                                                             \
    "{\"generation\":1,\"mode\":" mode                                                                         \
    ",\"sandbox\":\"\",\"packages\":0,\"record_secrets\":false,\"spent\":" NOTHING                             \
    ",\"hints\":[],\"budget\":" NOTHING "}"

static void what_is_not_understood_is_refused(void **state)
{
    static const char *const wrong[] = {
        "",
        "{}\n",
        (HEAD("1")), /* its end is missing */
        (HEAD("9") "\n"),
        "{\"rule\":{\"host\":\"example.com\"},\"bytes\":0}\n",
        (HEAD("1") "\n{}\n"),
        (HEAD("1") "\n{\"rule\":{\"host\":\"example.com\"}}\n"),
        (HEAD("1") "\n{\"bytes\":0,\"rule\":{\"host\":\"example.com\",\"action\":\"ask\"}}\n"),
        (HEAD("1") "\nx\n"),
    };
    struct error err;
    struct brief brief;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        autorules struct rules rules = RULES_NONE;

        assert_int_equal(brief_read(wrong[i], &brief, &rules, &err), -1);
        free(brief.bytes);
    }
    autorules struct rules rules = RULES_NONE;

    assert_int_equal(brief_read(HEAD("1") "\n", &brief, &rules, &err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_told_is_what_is_understood),
        cmocka_unit_test(what_is_not_understood_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
