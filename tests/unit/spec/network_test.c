/* Rules in files: what is taken, what is refused and how, and that no layer opens what the one before closed.
 */

#include "base/array.h"
#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "gateway/rules.h"
#include "tests/support/unit.h"
#include "tests/unit/spec/unit_layers.h"

#include <stdlib.h>

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
        { "[{host: a.test, action: deny, methods: [DELETE], paths: /x}]", "[deny a.test with DELETE on /x]" },
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
        { "{host: a.test, action: ask}", "ask", "allow and deny" },
        { "{host: a.test, action: stage}", "stage", "this version cannot" },
        { "{host: a.test, action: mock}", "mock", "this version cannot" },
        { "{host: a.test, action: permit}", "permit", "allow and deny" },
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
        { "{host: a.test, ca: /etc/x.pem}", "/etc/x.pem", "ca" },
        { "{host: a.test, rate: 5}", "5", "rate" },
        { "{host: a.test, hosts: b.test}", "b.test", "host, port, action, address, methods and paths" },
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
        { "localhost", "localhost", "its address" },
        { "db", "db", "its address" },
        { "printer.local", "printer.local", "its address" },
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

#define ON_SCRATCH(test) cmocka_unit_test_setup_teardown(test, unit_scratch_setup, unit_scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_SCRATCH(rules_are_taken_in_every_form),      ON_SCRATCH(what_cannot_be_acted_on_is_refused),
        ON_SCRATCH(a_repository_pins_no_address),       ON_SCRATCH(who_only_narrows_may_be_wide),
        ON_SCRATCH(no_layer_opens_what_another_closed), ON_SCRATCH(what_is_left_is_within_the_ceiling),
        ON_SCRATCH(what_was_cut_once_is_not_cut_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
