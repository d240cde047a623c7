#include "keeper/audited.h"

#include "base/array.h"
#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "keeper/outlet.h"
#include "spec/read.h"
#include "tests/support/unit.h"

/* What a gateway says of a request that an audit has let through. */
struct said {
    const char *host;
    unsigned port;
    enum reason without;
    const char *method, *path;
};

/* And what stands in the policy for it; "": no rule. */
static const struct {
    struct said said;
    const char *rule;
} cases[] = {
    { { .host = "a.test", .port = 443, .without = REASON_NO_RULE }, "{ host: \"a.test\", port: 443 }" },
    { { .host = "a.test", .port = 22, .without = REASON_PORT }, "{ host: \"a.test\", port: 22 }" },
    { { .host = "2001:db8::1", .port = 80, .without = REASON_NO_RULE }, "{ host: \"2001:db8::1\", port: 80 }" },
    { { .host = "a.test", .port = 80, .without = REASON_METHOD, .method = "POST", .path = "/v1/\"x\"" },
      "{ host: \"a.test\", port: 80, methods: [POST], paths: [\"/v1/\\\"x\\\"\"] }" },
    { { .host = "a.test", .port = 80, .without = REASON_PATH, .method = "GET", .path = "/%41" },
      "{ host: \"a.test\", port: 80, methods: [GET], paths: [\"/A\"] }" },
    /* what no rule says, or would say more than was asked for */
    { { .host = "a.test", .port = 80, .without = REASON_PATH, .method = "GET", .path = "/**" }, "" },
    { { .host = "a.test", .port = 80, .without = REASON_PATH, .method = "GET", .path = "/a/../b" }, "" },
    { { .host = "a.test", .port = 80, .without = REASON_PATH, .method = "GET", .path = "" }, "" },
    { { .host = "a.test", .port = 80, .without = REASON_METHOD, .method = "GET, POST", .path = "/" }, "" },
    { { .host = "a.test", .port = 80, .without = REASON_PROTOCOL, .method = "", .path = "" }, "" },
    { { .host = "a.test", .port = 80, .without = REASON_RULE, .method = "", .path = "" }, "" },
    { { .host = "a.test", .port = 0, .without = REASON_NO_RULE }, "" },
    { { .host = "*", .port = 80, .without = REASON_NO_RULE }, "" },
    { { .host = "*.test", .port = 80, .without = REASON_NO_RULE }, "" },
    { { .host = "a.test\" }\\n    - { host: \"*", .port = 80, .without = REASON_NO_RULE }, "" },
};

static char *literal(const char *text)
{
    union {
        const char *said;
        char *text;
    } same = { .said = text ? text : "" };

    return same.text; /* nobody writes to it */
}

static struct request complete(struct said said)
{
    return (struct request){ .host = literal(said.host),
                             .port = said.port,
                             .reason = REASON_AUDIT,
                             .without = said.without,
                             .allowed = true,
                             .count = 1,
                             .why = literal("why\n\xe2\x80\xaenetwork: { mode: open }"),
                             .command = literal(""),
                             .method = literal(said.method),
                             .path = literal(said.path) };
}

static void check_loads(const struct text *policy)
{
    struct error err;

    if (spec_check_policy(policy->data, policy->len, "audited.yaml", LAYER_OWNER, "/", &err) < 0)
        fail_msg("%s\n%s", err.text, policy->data);
}

static void each_request_makes_its_rule_and_no_other(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct request request = complete(cases[i].said);
        const struct requests requests = { .items = &request, .len = 1 };
        autotext struct text policy = TEXT_NONE;

        audited_policy(&requests, &policy);
        check_loads(&policy);
        if (*cases[i].rule)
            assert_contains(text_string(&policy), cases[i].rule);
        else if (strstr(text_string(&policy), "    - {"))
            fail_msg("case %zu: %s", i, text_string(&policy));
        assert_contains(text_string(&policy), "why????network: { mode: open }\n");
    }
}

static void only_what_the_audit_let_through_is_in_it_once(void **state)
{
    struct request items[] = {
        complete((struct said){ .host = "a.test", .port = 80, .without = REASON_NO_RULE }),
        complete((struct said){ .host = "a.test", .port = 80, .without = REASON_NO_RULE }),
        complete((struct said){ .host = "allowed.test", .port = 80 }),
        complete((struct said){ .host = "denied.test", .port = 80 }),
        complete((struct said){ .host = "inner.test", .port = 80, .without = REASON_NO_RULE }),
        complete((struct said){ .host = "inner.test", .port = 80 }),
    };
    const struct requests requests = { .items = items, .len = ARRAY_LEN(items), .others = 3 };
    autotext struct text policy = TEXT_NONE;

    (void)state;
    items[2].reason = REASON_RULE;
    items[3].reason = REASON_DENIED;
    items[5].reason = REASON_ADDRESS;
    items[3].allowed = items[5].allowed = false;
    audited_policy(&requests, &policy);
    check_loads(&policy);

    const char *first = strstr(text_string(&policy), "    - {");

    assert_non_null(first);
    assert_null(strstr(first + 1, "    - {"));
    assert_contains(first, "\"a.test\"");
    assert_contains(first, "# refused by the audit too: ");
    assert_contains(first, "NOT ALL: there were 3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_request_makes_its_rule_and_no_other),
        cmocka_unit_test(only_what_the_audit_let_through_is_in_it_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
