/* Rules in files: what is taken, what is refused and how, and that no layer opens what the one before closed.
 */

#include "base/array.h"
#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "gateway/rules.h"
#include "spec/file.h"
#include "spec/mock.h"
#include "spec/rule_forms.h"
#include "tests/support/unit.h"
#include "tests/unit/spec/unit_layers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void rules_are_taken_in_every_form(void **state)
{
    static const struct {
        const char *yaml, *shown;
    } rows[] = {
        { "[]", "[]" },
        { "[Example.COM]", "[example.com]" },
        { "[\"example.com:8443\"]", "[example.com:8443]" },
        { "[\"*.example.com\"]", "[*.example.com]" },
        { "[\"[2606:4700::1]:443\"]", "[[2606:4700::1]:443]" },
        { "[{host: example.com}]", "[example.com]" },
        { "[{host: example.com, port: 22, action: allow}]", "[example.com:22]" },
        { "[{host: example.com, action: deny}]", "[deny example.com]" },
        { "[{host: \"*\", action: deny}]", "[deny *]" },
        { "[{host: \"*.com\", action: deny}]", "[deny *.com]" },
        { "[{host: db, port: 5432, address: 10.0.0.5}]", "[db:5432 at 10.0.0.5]" },
        { "[{host: 10.0.0.5, port: 80}]", "[10.0.0.5:80]" },
        { "[{host: 169.254.169.254, port: 80}]", "[169.254.169.254:80]" },
        { "[b.test, a.test, b.test, {host: b.test}]", "[a.test, b.test]" },
        { "[{host: a.test, methods: GET}, {host: a.test, methods: [POST, GET, GET]}, a.test]",
          "[a.test, a.test with GET, a.test with GET, POST]" },
        { "[{host: a.test, port: 8443, paths: [/v1/**, /v2]}]", "[a.test:8443 on /v1/**, /v2]" },
        { "[{host: a.test, rate: 10/s}, {host: a.test, rate: 600/min, bytes: 1024M}, {host: b.test, bytes: 7}]",
          "[a.test at 10/s, a.test at 600/min for 1G, b.test for 7]" },
        { "[{host: a.test, action: deny, methods: [DELETE], paths: /x}]", "[deny a.test with DELETE on /x]" },
        { "[{host: a.test, action: mock}]", "[mock a.test as 200]" },
        { "[{host: db, action: mock, mock: {status: 404}}]", "[mock db as 404]" },
        { "[{host: \"*\", action: mock}]", "[mock * as 200]" },
        { "[{host: a.test, action: mock, methods: GET, paths: /x, mock: {status: 201, headers: {A: b}, body: "
          "c}}]",
          "[mock a.test with GET on /x as 201]" },
        { "[{host: a.test, action: mock, mock: {body: x}}, {host: a.test, action: mock, mock: {body: x}}]",
          "[mock a.test as 200]" },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        autofree char *yaml = text_format("network: {rules: %s}", rows[i].yaml);
        struct outcome outcome;

        layers_read(*state, &(struct layers){ .owner = yaml }, &outcome);
        if (outcome.result < 0)
            fail_msg("%s: %s", yaml, outcome.err->text);

        autofree char *shown = layers_shown(&fields[FIELD_RULES], &outcome.spec);

        assert_string_equal(shown, rows[i].shown);
        outcome_free(&outcome);
    }
}

/* One complaint, with the value, what is allowed, file and line. */
static void what_cannot_be_acted_on_is_refused(void **state)
{
    static const struct {
        const char *rule, *value, *must;
    } rows[] = {
        { "{host: a.test, action: ask}", "ask", "allow, deny, mock and count" },
        { "{host: a.test, action: stage}", "stage", "this version cannot" },
        { "{host: a.test, action: permit}", "permit", "allow, deny, mock and count" },
        { "{host: a.test, mock: {body: x}}", "a.test", "action: mock" },
        { "{host: a.test, action: mock, address: 10.0.0.5}", "a.test", "only for what is allowed" },
        { "{host: a.test, action: mock, mock: x}", "x", "a mapping" },
        { "{host: a.test, action: mock, mock: {status: 101}}", "a mapping", "200 to 599" },
        { "{host: a.test, action: mock, mock: {status: 2000}}", "a mapping", "200 to 599" },
        { "{host: a.test, action: mock, mock: {status: 204, body: x}}", "a mapping", "have none" },
        { "{host: a.test, action: mock, mock: {body: x, file: y}}", "a mapping", "one of body" },
        { "{host: a.test, action: mock, mock: {base64: x}}", "a mapping", "not base64" },
        { "{host: a.test, action: mock, mock: {file: ''}}", "a mapping", "without a name" },
        { "{host: a.test, action: mock, mock: {reply: x}}", "a mapping", "status, headers" },
        { "{host: a.test, action: mock, mock: {headers: {Content-Length: 5}}}", "a mapping", "itself" },
        { "{host: a.test, action: mock, mock: {headers: {transfer-encoding: chunked}}}", "a mapping",
          "itself" },
        { "{host: a.test, action: mock, mock: {headers: {Connection: close}}}", "a mapping", "itself" },
        { "{host: a.test, action: mock, mock: {headers: {content_length: 5}}}", "a mapping", "none" },
        { "{host: a.test, action: mock, mock: {headers: {\"A b\": c}}}", "a mapping", "none" },
        { "{host: a.test, action: mock, mock: {headers: {A: \"b\\r\\nC: d\"}}}", "a mapping", "none" },
        { "{host: a.test, action: mock, mock: {headers: {A: [b, [c]]}}}", "a mapping", "no text" },
        { "{host: a.test, action: mock, mock: {headers: x}}", "a mapping", "no mapping" },
        { "{host: a.test, secret: token}", "token", "secret" },
        { "{host: a.test, methods: []}", "a list", "at least one" },
        { "{host: a.test, methods: [get]}", "a list", "upper case" },
        { "{host: a.test, methods: [GET, CONNECT]}", "a list", "no method" },
        { "{host: a.test, methods: \"GET, PUT\"}", "GET, PUT", "upper case" },
        { "{host: a.test, methods: [[GET]]}", "a list", "texts" },
        { "{host: a.test, methods: {GET: 1}}", "a mapping", "a list" },
        { "{host: a.test, paths: []}", "a list", "at least one" },
        { "{host: a.test, paths: [v1]}", "a list", "a path such as" },
        { "{host: a.test, paths: [/v1/../x]}", "a list", "a path such as" },
        { "{host: a.test, paths: [\"/v1?x\"]}", "a list", "a path such as" },
        { "{host: a.test, paths: /%61}", "/%61", "a path such as" },
        { "{host: a.test, rate: 5}", "5", "such as 10/s" },
        { "{host: a.test, rate: 0/s}", "0/s", "such as 10/s" },
        { "{host: a.test, rate: 5/h}", "5/h", "such as 10/s" },
        { "{host: a.test, rate: -5/s}", "-5/s", "such as 10/s" },
        { "{host: a.test, rate: 5/s , bytes: none}", "none", "a size such as" },
        { "{host: a.test, bytes: 1X}", "1X", "a size such as" },
        { "{host: a.test, bytes: [1]}", "a list", "a text" },
        { "{host: a.test, action: deny, rate: 5/s}", "a.test", "only for what is allowed" },
        { "{host: a.test, action: count}", "a.test", "neither rate nor bytes" },
        { "{host: a.test, action: count, bytes: 1, address: 10.0.0.5}", "a.test", "only for what is allowed" },
        { "{host: a.test, action: deny, bytes: 5}", "a.test", "only for what is allowed" },
        { "{host: a.test, hosts: b.test}", "b.test",
          "host, port, action, address, methods, paths, ca, mock, rate and bytes" },
        { "{host: a.test, method: GET}", "network.rules: method: 'GET'", "did you mean methods?" },
        { "{host: a.test, method: GET}", "network.rules: method: 'GET'", "(in the rule for 'a.test')" },
        { "{host: a.test, action: mock, mock: {bdoy: x}}", "the key 'bdoy'", "did you mean body?" },
        { "{host: a.test, action: mock, mock: {body: {a: 1}}}", "mock: a mapping",
          "has a body that is no text (in the rule for 'a.test')" },
        { "{host: a.test, action: mock, mock: {file: [a]}}", "mock: a mapping",
          "has a file that is no text (in the rule for 'a.test')" },
        { "{port: 80}", "a mapping", "the key host" },
        { "{host: [a.test]}", "a list", "a text" },
        { "{host: a.test, port: 0}", "0", "1 to 65535" },
        { "{host: a.test, port: 65536}", "65536", "1 to 65535" },
        { "{host: a.test, port: 080}", "080", "1 to 65535" },
        { "{host: a.test, port: +80}", "+80", "1 to 65535" },
        { "\"a.test:\"", "a.test:", "1 to 65535" },
        { "\"a.test:https\"", "a.test:https", "1 to 65535" },
        { "\"https://a.test/\"", "https://a.test/", "" },
        { "\"a.*.test\"", "a.*.test", "*.example.com" },
        { "\"*\"", "*", "everybody's names" },
        { "\"*.com\"", "*.com", "everybody's names" },
        { "\"*.co.uk\"", "*.co.uk", "everybody's names" },
        { "\"*.github.io\"", "*.github.io", "everybody's names" },
        { "localhost", "localhost", "--host-service PORT" },
        { "\"127.0.0.2:80\"", "127.0.0.2:80", "--host-service 80" },
        { "db", "db", "cove allow NAME:PORT --address ADDRESS" },
        { "printer.local", "printer.local", "--address ADDRESS" },
        { "10.0.0.5", "10.0.0.5", "its port" },
        { "\"2606:4700::1\"", "2606:4700::1", "its port" },
        { "\"127.1:80\"", "127.1:80", "odd spelling" },
        { "\"0.0.0.0:80\"", "0.0.0.0:80", "no one machine's" },
        { "\"224.0.0.1:80\"", "224.0.0.1:80", "no one machine's" },
        { "{host: a.test, address: b.test}", "b.test", "an address such as" },
        { "{host: a.test, address: 127.1}", "127.1", "an address such as" },
        { "{host: a.test, address: 0.0.0.0}", "a.test", "no one machine's" },
        { "{host: 10.0.0.5, port: 1, address: 10.0.0.6}", "10.0.0.5", "another one" },
        { "{host: a.test, action: deny, address: 10.0.0.6}", "a.test", "only for what is allowed" },
        { "bücher.test", "b", "xn--" },
        { "[a.test]", "a list", "a text" },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        autofree char *yaml = text_format("network:\n  rules:\n    - %s\n", rows[i].rule);
        struct outcome outcome;

        layers_read(*state, &(struct layers){ .owner = yaml }, &outcome);
        if (outcome.result == 0)
            fail_msg("taken: %s", rows[i].rule);
        assert_int_equal(outcome.err->kind, ERROR_INVALID);
        assert_contains(outcome.err->text, "owner.yaml:3: network.rules: ");
        assert_contains(outcome.err->text, rows[i].value);
        assert_contains(outcome.err->text, rows[i].must);
        outcome_free(&outcome);
    }
}

static void a_repository_pins_no_address(void **state)
{
    struct outcome outcome;

    layers_read(
        *state,
        &(struct layers){ .owner = "network: {rules: [a.test]}",
                          .repository = "policy: {network: {rules: [{host: a.test, address: 10.0.0.1}]}}" },
        &outcome);
    assert_int_equal(outcome.result, -1);
    assert_contains(outcome.err->text, "cove.yaml:1: policy.network.rules");
    assert_contains(outcome.err->text, "only the owner and the administrator");
    outcome_free(&outcome);
}

/* Only the administrator has a say in addresses. */
static void a_repository_that_leaves_a_host_leaves_its_address(void **state)
{
    static const char owner[] = "network: {rules: [{host: db, port: 5432, address: 10.0.0.5}]}";
    static const struct {
        struct layers layers;
        const char *left;
    } rows[] = {
        { { .owner = owner, .repository = "policy: {network: {rules: [{host: db, port: 5432}]}}" },
          "[db:5432 at 10.0.0.5]" },
        { { .owner = owner,
            .repository = "policy: {network: {rules: [{host: db, port: 5432, methods: GET}]}}" },
          "[db:5432 at 10.0.0.5 with GET]" },
        { { .owner = owner, .repository = "policy: {network: {rules: [{host: \"*\", port: 5433}]}}" }, "[]" },
        { { .admin = "network: {rules: [{host: db, port: 5432}]}", .owner = owner }, "[]" },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct outcome outcome;

        layers_read(*state, &rows[i].layers, &outcome);
        if (outcome.result < 0)
            fail_msg("%s", outcome.err->text);

        autofree char *shown = layers_shown(&fields[FIELD_RULES], &outcome.spec);

        assert_string_equal(shown, rows[i].left);
        outcome_free(&outcome);
    }
}

static void who_only_narrows_may_be_wide(void **state)
{
    static const struct layers cases[] = {
        { .admin = "network: {rules: [\"*\"]}", .owner = "network: {rules: [a.test]}" },
        { .owner = "network: {rules: [a.test]}", .repository = "policy: {network: {rules: [\"*.test\"]}}" },
        { .owner = "network: {rules: [a.test]}", .repository = "policy: {network: {registries: [npm]}}" },
        { .owner = "network: {rules: [a.test]}", .repository = "policy: {network: {mode: rules}}" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct outcome outcome;

        layers_read(*state, &cases[i], &outcome);
        if (outcome.result < 0)
            fail_msg("%s", outcome.err->text);

        autofree char *shown = layers_shown(&fields[FIELD_RULES], &outcome.spec);

        assert_string_equal(shown, "[a.test]");
        outcome_free(&outcome);
    }
}

/* Of a rate and of bytes the least holds, whichever layer said it. */
static void of_bounds_the_least_holds(void **state)
{
    static const struct {
        const char *admin, *owner, *repository, *shown;
    } rows[] = {
        { "[{host: a.test, rate: 10/s}]", "[a.test]", NULL, "[a.test at 10/s]" },
        { "[{host: a.test, rate: 10/s}]", "[{host: a.test, rate: 100/s}]", NULL, "[a.test at 10/s]" },
        { "[{host: a.test, rate: 10/s}]", "[{host: a.test, rate: 5/s}]", NULL, "[a.test at 5/s]" },
        { "[{host: a.test, rate: 10/s}]", "[{host: a.test, rate: 500/min}]", NULL, "[a.test at 500/min]" },
        { "[{host: a.test, rate: 10/s}]", "[{host: a.test, rate: 700/min}]", NULL, "[a.test at 10/s]" },
        { "[{host: \"*\", bytes: 1G}, {host: a.test, bytes: 1M}]", "[a.test]", NULL, "[a.test for 1M]" },
        { NULL, "[{host: a.test, bytes: 1G}]", "[\"*\"]", "[a.test for 1G]" },
        { NULL, "[{host: a.test, bytes: 1G}]", "[{host: \"*\", bytes: 2G, rate: 1/s}]",
          "[a.test at 1/s for 1G]" },
        { NULL, "[{host: a.test, bytes: 1G}]", "[{host: \"*\", bytes: 2M}]", "[a.test for 2M]" },
        { "[{host: a.test, bytes: 3M}]", "[{host: a.test, bytes: 1G}]", "[{host: \"*\", bytes: 2M}]",
          "[a.test for 2M]" },
        /* What several rules have of one is counted together. */
        { NULL, "[{host: \"*.a.test\", bytes: 1M, rate: 5/s}]", "[b.a.test, c.a.test]",
          "[count *.a.test at 5/s for 1M, b.a.test at 5/s for 1M, c.a.test at 5/s for 1M]" },
        { NULL, "[{host: a.test, bytes: 1M}]",
          "[{host: a.test, paths: /x}, {host: a.test, paths: /y, bytes: 2K}]",
          "[a.test on /x for 2K, a.test on /y for 2K, count a.test on /y for 2K, count a.test for 1M]" },
        { "[{host: \"*.a.test\", bytes: 1M}]", "[b.a.test, {host: c.a.test, bytes: 7}]", NULL,
          "[count *.a.test for 1M, b.a.test for 1M, c.a.test for 7]" },
        { "[{host: \"*\"}, {host: a.test, action: count, bytes: 1M}]",
          "[a.test, {host: \"*.test\", action: count, bytes: 2M}]", "[\"*\"]",
          "[count *.test for 2M, a.test, count a.test for 1M]" },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        autofree char *admin = rows[i].admin ? text_format("network: {rules: %s}", rows[i].admin) : NULL,
                      *owner = text_format("network: {rules: %s}", rows[i].owner),
                      *repository = rows[i].repository
                                        ? text_format("policy: {network: {rules: %s}}", rows[i].repository)
                                        : NULL;
        struct outcome outcome;

        layers_read(*state, &(struct layers){ .admin = admin, .owner = owner, .repository = repository },
                    &outcome);
        if (outcome.result < 0)
            fail_msg("%s: %s", owner, outcome.err->text);

        autofree char *shown = layers_shown(&fields[FIELD_RULES], &outcome.spec);

        assert_string_equal(shown, rows[i].shown);
        outcome_free(&outcome);
    }
}

/* Random layers: what is reached in the end was reached by the layer before, and its ceiling allows it. */

static unsigned long long random_state;

static unsigned pick(unsigned below)
{
    random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)(random_state >> 33) % below;
}

static char *random_layer(bool grants)
{
    static const char *const grant_hosts[] = { "a.test", "b.a.test", "*.a.test", "c.b.a.test", "*.b.a.test" };
    static const char *const wide_hosts[] = { "*", "*.test", "a.test", "b.a.test", "*.a.test" };
    static const char *const actions[] = { "allow", "allow", "allow", "deny" };
    static const char *const ports[] = { "", ", port: 443", ", port: 22" };
    static const char *const methods[] = {
        "", "", "", ", methods: GET", ", methods: [GET, POST]", ", methods: [PUT]"
    };
    static const char *const paths[] = {
        "", "", "", ", paths: /v1/**", ", paths: [/v1/a, /v2]", ", paths: /*/a"
    };
    static const char *const modes[] = { "", "", "mode: open, ", "mode: rules, ", "mode: none, " };
    autotext struct text text = TEXT_NONE;

    text_addf(&text, "{%srules: [", modes[pick(ARRAY_LEN(modes))]);
    for (unsigned left = pick(4); left; left--) {
        const char *host =
            grants ? grant_hosts[pick(ARRAY_LEN(grant_hosts))] : wide_hosts[pick(ARRAY_LEN(wide_hosts))];

        text_addf(&text, "{host: \"%s\"%s%s%s, action: %s}%s", host, ports[pick(ARRAY_LEN(ports))],
                  methods[pick(ARRAY_LEN(methods))], paths[pick(ARRAY_LEN(paths))],
                  actions[pick(ARRAY_LEN(actions))], left > 1 ? ", " : "");
    }
    if (pick(3) == 0)
        text_addf(&text, "%s\"10.0.0.5:80\"", text_ends(text_string(&text), "[") ? "" : ", ");
    text_add(&text, "]}");
    return text_steal(&text);
}

/* Which of some requests would pass, a bit each. */
static unsigned reaches(const struct spec *spec, const char *host, uint16_t port)
{
    static const char *const requests[][2] = { { "GET", "/v1/a" }, { "POST", "/v1/a" }, { "GET", "/v1/b" },
                                               { "PUT", "/v2" },   { "GET", "/v2/a" },  { NULL, NULL } };
    unsigned passed = 0;
    struct rules rules;

    rules_init(&rules, spec->network, &spec->rules);
    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        const struct question question = { host, strlen(host), port, requests[i][0], requests[i][1] };
        struct verdict verdict;

        rules_verdict(&rules, &question, &verdict);
        passed |= verdict.allowed ? 1U << i : 0;
    }
    rules_free(&rules);
    return passed;
}

static void no_layer_opens_what_another_closed(void **state)
{
    static const char *const hosts[] = { "a.test", "b.a.test", "c.b.a.test", "d.a.test", "x.test", "10.0.0.5" };
    static const uint16_t ports[] = { 80, 443, 22 };
    unsigned reached = 0, closed = 0;

    random_state = 7;
    for (int round = 0; round < 400; round++) {
        autofree char *admin_rules = random_layer(false), *owner_rules = random_layer(true),
                      *repository_rules = random_layer(false);
        autofree char *admin = text_format("network: %s", admin_rules),
                      *owner = text_format("network: %s", owner_rules),
                      *repository = text_format("policy: {network: %s}", repository_rules);
        struct outcome alone, bound, all;

        layers_read(*state, &(struct layers){ .owner = owner }, &alone);
        layers_read(*state, &(struct layers){ .admin = admin, .owner = owner }, &bound);
        layers_read(*state, &(struct layers){ .admin = admin, .owner = owner, .repository = repository }, &all);
        if (alone.result < 0 || bound.result < 0 || all.result < 0)
            fail_msg("%s%s%s", alone.err->text, bound.err->text, all.err->text);
        for (size_t i = 0; i < ARRAY_LEN(hosts) * ARRAY_LEN(ports); i++) {
            const char *host = hosts[i / ARRAY_LEN(ports)];
            uint16_t port = ports[i % ARRAY_LEN(ports)];
            unsigned in_alone = reaches(&alone.spec, host, port), in_bound = reaches(&bound.spec, host, port),
                     in_all = reaches(&all.spec, host, port);

            if ((in_bound & ~in_alone) || (in_all & ~in_bound))
                fail_msg("%s:%u by %s | %s | %s", host, port, admin, owner, repository);
            reached += in_all != 0;
            closed += (in_alone & ~in_all) != 0;
        }
        outcome_free(&alone);
        outcome_free(&bound);
        outcome_free(&all);
    }
    assert_true(reached > 100);
    assert_true(closed > 100);
}

/* And a ceiling alone, as if it were what holds, allows all that is left. */
static void what_is_left_is_within_the_ceiling(void **state)
{
    static const char *const hosts[] = { "a.test", "b.a.test", "c.b.a.test", "d.a.test", "10.0.0.5" };
    static const uint16_t ports[] = { 80, 443, 22 };

    random_state = 11;
    for (int round = 0; round < 400; round++) {
        autofree char *ceiling_rules = random_layer(true), *owner_rules = random_layer(true);
        autofree char *ceiling = text_format("network: %s", ceiling_rules),
                      *owner = text_format("network: %s", owner_rules);
        struct outcome alone, bound;

        layers_read(*state, &(struct layers){ .owner = ceiling }, &alone);
        layers_read(*state, &(struct layers){ .admin = ceiling, .owner = owner }, &bound);
        if (alone.result < 0 || bound.result < 0)
            fail_msg("%s%s", alone.err->text, bound.err->text);
        for (size_t i = 0; i < ARRAY_LEN(hosts) * ARRAY_LEN(ports); i++) {
            const char *host = hosts[i / ARRAY_LEN(ports)];
            uint16_t port = ports[i % ARRAY_LEN(ports)];

            if (reaches(&bound.spec, host, port) & ~reaches(&alone.spec, host, port))
                fail_msg("%s:%u by %s under %s", host, port, owner, ceiling);
        }
        outcome_free(&alone);
        outcome_free(&bound);
    }
}

/* What was cut to a ceiling is within it: a sandbox that is started again under the same one is not refused. */
static void what_was_cut_once_is_not_cut_again(void **state)
{
    random_state = 13;
    for (int round = 0; round < 200; round++) {
        autofree char *ceiling_rules = random_layer(false), *owner_rules = random_layer(true);
        autofree char *ceiling = text_format("network: %s", ceiling_rules),
                      *owner = text_format("network: %s", owner_rules);
        autotext struct text json = TEXT_NONE;
        struct outcome bound, again;

        layers_read(*state, &(struct layers){ .admin = ceiling, .owner = owner }, &bound);
        assert_int_equal(bound.result, 0);
        spec_json(&bound.spec, &json);

        autofree char *file = text_copy(unit_scratch_file(*state, "spec.json", text_string(&json)));

        layers_read(*state, &(struct layers){ .admin = ceiling, .flags = { "--spec", file } }, &again);
        if (again.result < 0)
            fail_msg("%s under %s: %s", owner, ceiling, again.err->text);

        autofree char *first = layers_shown(&fields[FIELD_RULES], &bound.spec),
                      *second = layers_shown(&fields[FIELD_RULES], &again.spec);

        assert_string_equal(first, second);
        assert_int_equal(bound.spec.network, again.spec.network);
        outcome_free(&bound);
        outcome_free(&again);
    }
}

/* Nothing leaves by a mock, so it comes through every ceiling, and what a ceiling mocks no rule lets out. */
static void a_mock_is_to_layers_what_a_denial_is(void **state)
{
    static const struct {
        const char *admin, *owner, *repository, *shown;
    } rows[] = {
        { "[a.test]", "[{host: b.test, action: mock}]", NULL, "[mock b.test as 200]" },
        { "[{host: a.test, action: mock}]", "[a.test]", NULL, "[mock a.test as 200]" },
        { "[a.test, {host: a.test, action: mock, paths: /x}]", "[a.test]", NULL,
          "[a.test, mock a.test on /x as 200]" },
        { NULL, "[a.test, b.test]", "[b.test, {host: a.test, action: mock, mock: {status: 500}}]",
          "[mock a.test as 500, b.test]" },
        { NULL, "[{host: a.test, action: mock}]",
          "[{host: a.test, action: mock, paths: /x, mock: {status: 500}}]", "[mock a.test as 200]" },
        { NULL, "[{host: a.test, action: mock}]", "[{host: a.test, action: deny}]",
          "[deny a.test, mock a.test as 200]" },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        autofree char *admin = rows[i].admin ? text_format("network: {rules: %s}", rows[i].admin) : NULL;
        autofree char *owner = text_format("network: {rules: %s}", rows[i].owner);
        autofree char *repository =
            rows[i].repository ? text_format("policy: {network: {rules: %s}}", rows[i].repository) : NULL;
        struct outcome outcome;

        layers_read(*state, &(struct layers){ .admin = admin, .owner = owner, .repository = repository },
                    &outcome);
        if (outcome.result < 0)
            fail_msg("row %zu: %s", i, outcome.err->text);
        rule_list_sort(&outcome.spec.rules);

        autofree char *shown = layers_shown(&fields[FIELD_RULES], &outcome.spec);

        assert_string_equal(shown, rows[i].shown);
        outcome_free(&outcome);
    }
}

static void no_repository_names_a_file(void **state)
{
    struct outcome outcome;

    layers_read(*state,
                &(struct layers){ .repository = "policy: {network: {rules: [{host: a.test, action: mock, mock: "
                                                "{file: /etc/shadow}}]}}" },
                &outcome);
    assert_int_equal(outcome.result, -1);
    assert_non_null(strstr(outcome.err->text, "only the owner and the administrator"));
    outcome_free(&outcome);
}

/* What a file of the owner's names lies beside it, is read once, and is the same after any number of readings
 * of what was written of it. */
static void bodies_come_whole_from_wherever_they_are(void **state)
{
    static const char body[] = "zero \0 and \xff";
    struct outcome outcome, again;
    const struct file_rules trusted = { geteuid(), 0, "you", true };
    autotext struct text json = TEXT_NONE;
    struct error err;

    autofree char *beside = text_copy(unit_scratch_file(*state, "body.bin", ""));
    FILE *file = fopen(beside, "w");

    assert_true(fwrite(body, 1, sizeof body, file) == sizeof body && fclose(file) == 0);
    layers_read(*state,
                &(struct layers){ .owner =
                                      "network: {rules: [{host: a.test, action: mock, mock: {file: body.bin, "
                                      "headers: {Set-Cookie: [a, b]}}}]}" },
                &outcome);
    assert_int_equal(outcome.result, 0);
    struct mock *mock = outcome.spec.rules.items[0].mock;

    assert_string_equal(mock->file, beside);
    assert_int_equal(mocks_load(&outcome.spec.rules, &trusted, &err), 0);
    assert_null(mock->file);
    assert_int_equal(mock->body.len, sizeof body);
    spec_json(&outcome.spec, &json);
    autofree char *spec = text_copy(unit_scratch_file(*state, "spec.json", text_string(&json)));

    layers_read(*state, &(struct layers){ .flags = { "--spec", spec } }, &again);
    assert_int_equal(again.result, 0);
    assert_int_equal(mock_compare(mock, again.spec.rules.items[0].mock), 0);
    outcome_free(&outcome);
    outcome_free(&again);
}

static void a_file_that_others_can_write_is_no_mock(void **state)
{
    const struct file_rules trusted = { geteuid(), 0, "you", true };
    struct error err = { 0 };
    struct outcome outcome;

    autofree char *beside = text_copy(unit_scratch_file(*state, "body.bin", "x"));

    layers_read(
        *state,
        &(struct layers){ .owner = "network: {rules: [{host: a.test, action: mock, mock: {file: body.bin}}]}" },
        &outcome);
    assert_int_equal(chmod(beside, 0666), 0);
    assert_int_equal(mocks_load(&outcome.spec.rules, &trusted, &err), -1);
    assert_non_null(strstr(err.text, "others can write it"));
    assert_int_equal(unlink(beside), 0);
    assert_int_equal(mocks_load(&outcome.spec.rules, &trusted, &err), -1);
    assert_non_null(strstr(err.text, "is not there"));
    outcome_free(&outcome);
}

#define ON_SCRATCH(test) cmocka_unit_test_setup_teardown(test, unit_scratch_setup, unit_scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_SCRATCH(rules_are_taken_in_every_form),
        ON_SCRATCH(what_cannot_be_acted_on_is_refused),
        ON_SCRATCH(a_repository_pins_no_address),
        ON_SCRATCH(a_repository_that_leaves_a_host_leaves_its_address),
        ON_SCRATCH(who_only_narrows_may_be_wide),
        ON_SCRATCH(no_layer_opens_what_another_closed),
        ON_SCRATCH(what_is_left_is_within_the_ceiling),
        ON_SCRATCH(what_was_cut_once_is_not_cut_again),
        ON_SCRATCH(a_mock_is_to_layers_what_a_denial_is),
        ON_SCRATCH(no_repository_names_a_file),
        ON_SCRATCH(bodies_come_whole_from_wherever_they_are),
        ON_SCRATCH(a_file_that_others_can_write_is_no_mock),
        ON_SCRATCH(of_bounds_the_least_holds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
