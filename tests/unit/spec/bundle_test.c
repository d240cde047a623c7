/* The ca of a rule: a file that is read once, by whoever may say it, and then certificates. */

#include "spec/bundle.h"

#include "base/array.h"
#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "tests/support/unit.h"
#include "tests/unit/spec/unit_layers.h"

#include <stdlib.h>
#include <sys/stat.h>

#define ONE "-----BEGIN CERTIFICATE-----\nQUFB\n-----END CERTIFICATE-----\n"
#define OTHER "-----BEGIN CERTIFICATE-----\nQkJC\n-----END CERTIFICATE-----\n"
#define KEY "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n"

static const char with_ca[] = "network: {rules: [{host: a.test, ca: ca.pem}]}";

static void only_the_certificates_of_a_file_are_kept(void **state)
{
    struct outcome outcome;

    unit_scratch_file(*state, "ca.pem", "# ours\n" ONE "\n" KEY "text" OTHER "-----BEGIN CERTIFICATE-----\nQQ");
    layers_read(*state, &(struct layers){ .owner = with_ca }, &outcome);
    assert_int_equal(outcome.result, 0);
    assert_string_equal(outcome.spec.rules.items[0].ca, ONE OTHER);
    outcome_free(&outcome);
}

static void certificates_stand_in_a_policy_as_well(void **state)
{
    struct outcome outcome;

    layers_read(*state,
                &(struct layers){ .owner = "network:\n  rules:\n    - host: a.test\n      ca: |\n"
                                           "        -----BEGIN CERTIFICATE-----\n        QUFB\n"
                                           "        -----END CERTIFICATE-----\n" },
                &outcome);
    assert_int_equal(outcome.result, 0);
    assert_string_equal(outcome.spec.rules.items[0].ca, ONE);
    outcome_free(&outcome);
}

/* And the description of a sandbox has them, so that nobody needs the file again. */
static void a_description_has_the_certificates(void **state)
{
    autotext struct text json = TEXT_NONE;
    struct outcome outcome;
    struct spec again;
    struct error err;

    unit_scratch_file(*state, "ca.pem", ONE);
    layers_read(*state, &(struct layers){ .owner = with_ca }, &outcome);
    assert_int_equal(outcome.result, 0);
    spec_json(&outcome.spec, &json);
    assert_int_equal(spec_read_json(text_string(&json), json.len, "spec.json", &again, &err), 0);
    assert_string_equal(again.rules.items[0].ca, ONE);
    spec_free(&again);
    outcome_free(&outcome);

    static const char named[] = "{\"network\":{\"rules\":[{\"host\":\"a.test\",\"ca\":\"/etc/ca.pem\"}]}}";

    assert_int_equal(spec_read_json(named, sizeof named - 1, "spec.json", &again, &err), -1);
    assert_contains(err.text, "has the certificates themselves");
}

static void what_cannot_be_read_stops_the_start(void **state)
{
    static char large[BUNDLE_MAX + 2];
    static const struct {
        const char *rule, *content, *must;
    } rows[] = {
        { "{host: a.test, ca: none.pem}", ONE, "none.pem, is not there" },
        { "{host: a.test, ca: /none/ca.pem}", ONE, "/none/ca.pem, is not there" },
        { "{host: a.test, ca: ca.pem}", "", "has no certificate in it" },
        { "{host: a.test, ca: ca.pem}", KEY, "has no certificate in it" },
        { "{host: a.test, ca: ca.pem}", "-----BEGIN CERTIFICATE-----\nQUFB", "has no certificate in it" },
        { "{host: a.test, ca: ca.pem}", large, "larger than 64 KB" },
        { "{host: a.test, ca: [ca.pem]}", ONE, "must be a file with certificates" },
        { "{host: a.test, ca: \"\"}", ONE, "must be a file with certificates" },
        { "{host: a.test, ca: ca.pem, action: deny}", ONE, "only for what is allowed" },
    };

    memset(large, 'x', sizeof large - 1);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        autofree char *yaml = text_format("network:\n  rules:\n    - %s\n", rows[i].rule);
        struct outcome outcome;

        unit_scratch_file(*state, "ca.pem", rows[i].content);
        layers_read(*state, &(struct layers){ .owner = yaml }, &outcome);
        if (outcome.result == 0)
            fail_msg("taken: %s", rows[i].rule);
        assert_contains(outcome.err->text, "owner.yaml:3: network.rules");
        assert_contains(outcome.err->text, rows[i].must);
        outcome_free(&outcome);
    }
}

static void a_file_that_others_can_write_vouches_for_nobody(void **state)
{
    struct outcome outcome;

    unit_scratch_file(*state, "ca.pem", ONE);
    assert_int_equal(chmod(unit_scratch_path(*state, "ca.pem"), 0666), 0);
    layers_read(*state, &(struct layers){ .owner = with_ca }, &outcome);
    assert_int_equal(outcome.result, -1);
    assert_contains(outcome.err->text, "others can write it");
    outcome_free(&outcome);
}

static void all_of_them_together_have_a_bound(void **state)
{
    autotext struct text yaml = TEXT_NONE, content = TEXT_NONE;
    struct outcome outcome;

    while (content.len < BUNDLE_MAX - sizeof ONE)
        text_add(&content, ONE);
    unit_scratch_file(*state, "ca.pem", text_string(&content));
    text_add(&yaml, "network:\n  rules:\n");
    for (int i = 0; i < BUNDLES_MAX / BUNDLE_MAX + 1; i++)
        text_addf(&yaml, "    - {host: a%d.test, ca: ca.pem}\n", i);
    layers_read(*state, &(struct layers){ .owner = text_string(&yaml) }, &outcome);
    assert_int_equal(outcome.result, -1);
    assert_contains(outcome.err->text, "more than 512 KB");
    outcome_free(&outcome);
}

static void a_repository_has_nobody_vouch(void **state)
{
    struct outcome outcome;

    layers_read(*state,
                &(struct layers){ .owner = "network: {rules: [a.test]}",
                                  .repository = "policy: {network: {rules: [{host: a.test, ca: ca.pem}]}}" },
                &outcome);
    assert_int_equal(outcome.result, -1);
    assert_contains(outcome.err->text, "only the owner and the administrator");
    outcome_free(&outcome);
}

/* Whom the administrator names for a host vouches for it, whatever the owner says. */
static void the_administrator_s_holds(void **state)
{
    static const struct {
        const char *admin, *owner, *ca;
    } rows[] = {
        { "[a.test]", "[{host: a.test, ca: ca.pem}]", ONE },
        { "[{host: a.test, ca: other.pem}]", "[a.test]", OTHER },
        { "[{host: a.test, ca: other.pem}]", "[{host: a.test, ca: ca.pem}]", OTHER },
        { "[\"*\", {host: \"*.test\", ca: other.pem}]", "[{host: a.test, ca: ca.pem, methods: GET}]", OTHER },
        { "[{host: a.test, port: 443, ca: other.pem}]", "[{host: a.test, ca: ca.pem}]", OTHER },
        { "[a.test, {host: b.test, ca: other.pem}]", "[a.test]", NULL },
    };

    unit_scratch_file(*state, "ca.pem", ONE);
    unit_scratch_file(*state, "other.pem", OTHER);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        autofree char *admin = text_format("network: {rules: %s}", rows[i].admin),
                      *owner = text_format("network: {rules: %s}", rows[i].owner);
        struct outcome outcome;

        layers_read(*state, &(struct layers){ .admin = admin, .owner = owner }, &outcome);
        if (outcome.result < 0)
            fail_msg("%s: %s", owner, outcome.err->text);
        assert_int_equal(outcome.spec.rules.len, 1);
        if (rows[i].ca)
            assert_string_equal(outcome.spec.rules.items[0].ca, rows[i].ca);
        else
            assert_null(outcome.spec.rules.items[0].ca);
        outcome_free(&outcome);
    }
}

#define ON_SCRATCH(test) cmocka_unit_test_setup_teardown(test, unit_scratch_setup, unit_scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_SCRATCH(only_the_certificates_of_a_file_are_kept),
        ON_SCRATCH(certificates_stand_in_a_policy_as_well),
        ON_SCRATCH(a_description_has_the_certificates),
        ON_SCRATCH(what_cannot_be_read_stops_the_start),
        ON_SCRATCH(a_file_that_others_can_write_vouches_for_nobody),
        ON_SCRATCH(all_of_them_together_have_a_bound),
        ON_SCRATCH(a_repository_has_nobody_vouch),
        ON_SCRATCH(the_administrator_s_holds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
