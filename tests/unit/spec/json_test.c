/* The canonical JSON of a spec and its hash. */

#include "base/array.h"
#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "tests/support/unit.h"
#include "tests/unit/spec/unit_layers.h"

static void read_back(const struct spec *spec, struct spec *again)
{
    autotext struct text json = TEXT_NONE;
    struct error err = { 0 };

    spec_json(spec, &json);
    if (spec_read_json(json.data, json.len, "spec.json", again, &err) < 0)
        fail_msg("%s: %s", err.text, json.data);
}

static void the_canonical_form_is_fixed(void **state)
{
    static const char want[] =
        "{\"caches\":true,\"checkpoints\":{\"keep\":\"200\",\"live_bytes\":\"64M\",\"live_files\":\"5000\","
        "\"space\":\"2G\"},\"command\":[],\"directory\":\".\",\"env\":{},\"files\":{"
        "\"hide\":[],\"read\":[],\"write\":[]},"
        "\"hostname\":\"cove\",\"image\":\"host\",\"limits\":{\"cpus\":\"none\","
        "\"disk\":\"none\",\"enforce\":\"best\",\"file-size\":\"none\",\"inodes\":\"none\","
        "\"memory\":\"none\",\"open-files\":\"none\",\"output\":\"none\","
        "\"processes\":\"4096\",\"timeout\":\"none\"},"
        "\"network\":{\"budget\":{\"bytes\":\"none\",\"connections\":\"none\",\"requests\":\"none\"},"
        "\"host-services\":[],\"mode\":\"rules\",\"package-cache\":true,\"package-cache-size\":\"2G\","
        "\"record\":null,\"record-secrets\":false,\"registries\":[],"
        "\"registries-from\":\"user\",\"replay\":null,\"rules\":[],\"upstream-proxy\":\"none\"},"
        "\"remove\":false,\"root\":true,"
        "\"seccomp\":\"default\",\"services\":[],\"tools\":true,\"tty\":\"auto\",\"user\":null,"
        "\"volumes\":[],\"workdir\":null,\"workspace\":\"cow\"}";
    autotext struct text json = TEXT_NONE;
    struct outcome outcome;
    char hash[65];

    layers_read(*state, &(struct layers){ 0 }, &outcome);
    spec_json(&outcome.spec, &json);
    assert_string_equal(text_string(&json), want);
    spec_hash(&outcome.spec, hash);
    assert_string_equal(hash, "d457d3c458a79c2f5312439cb600cc4ef0ffbd85d9c05d9ca2d7298e8cd32abb");
    outcome_free(&outcome);
}

static const struct layers everything = {
    .owner = "tools: false\ncaches: false\nroot: true\n",
    .flags = { "--user",
               "0:7",
               "--seccomp=strict",
               "-v/a\xff:/b:ro",
               "-t",
               "--rm",
               "--timeout=1h1ms",
               "-eA=\xfe\xfd",
               "-eB=\"\\\n",
               "--read=/r\x7f",
               "--write=/w",
               "--hide=*.pem",
               "-C/dir",
               "-winner",
               "--image=/img",
               "--workspace=copy",
               "--network=open",
               "--allow=*.a.test",
               "--allow=10.0.0.1:22",
               "--registry=npm",
               "--service=a\xff -b",
               "--service=/x/a" },
};

static void a_spec_read_back_from_its_json_has_the_same_hash(void **state)
{
    autospec struct spec again = SPEC_NONE;
    struct outcome outcome;
    char hash[65], hash_again[65];

    layers_read(*state, &everything, &outcome);
    if (outcome.result < 0)
        fail_msg("%s", outcome.err->text);
    strings_add(&outcome.spec.command, "printf");
    strings_add(&outcome.spec.command, "\xff\x80");
    strings_add(&outcome.spec.command, "");
    read_back(&outcome.spec, &again);
    spec_hash(&outcome.spec, hash);
    spec_hash(&again, hash_again);
    assert_string_equal(hash, hash_again);
    assert_string_equal(again.command.items[1], "\xff\x80");
    assert_string_equal(again.volumes.items[0].source, "/a\xff");
    assert_string_equal(again.env.items[0], "A=\xfe\xfd");
    assert_int_equal(again.timeout_ms, 3600001);
    assert_string_equal(again.user, "0:7");
    assert_string_equal(again.services.items[0].run, "a\xff -b");
    assert_string_equal(again.services.items[1].name, "a-2");
    outcome_free(&outcome);
}

static void order_and_repetition_do_not_change_the_hash(void **state)
{
    static const struct layers one = { .flags = { "--read=/a", "--read=/b", "-eA=1", "-eB=2", "--hide=x" } };
    static const struct layers two = { .flags = { "-eB=0", "--hide=x", "--hide=x", "-eB=2", "--read=/b/",
                                                  "-eA=1", "--read=//a", "--read=/b" } };
    struct outcome first, second;
    char hash[65], other[65];

    layers_read(*state, &one, &first);
    layers_read(*state, &two, &second);
    spec_hash(&first.spec, hash);
    spec_hash(&second.spec, other);
    assert_string_equal(hash, other);
    outcome_free(&first);
    outcome_free(&second);
}

static void every_flag_changes_the_hash(void **state)
{
    struct outcome plain;
    char hash[65], other[65];

    layers_read(*state, &(struct layers){ 0 }, &plain);
    spec_hash(&plain.spec, hash);
    outcome_free(&plain);
    for (size_t i = 0; everything.flags[i]; i++) {
        const char *value = strcmp(everything.flags[i], "--user") == 0 ? everything.flags[i + 1] : NULL;
        struct outcome outcome;

        layers_read(*state, &(struct layers){ .flags = { everything.flags[i], value } }, &outcome);
        assert_int_equal(outcome.result, 0);
        spec_hash(&outcome.spec, other);
        assert_string_not_equal(hash, other);
        outcome_free(&outcome);
        i += value != NULL;
    }
}

static void a_variable_named_like_our_own_marks_is_kept(void **state)
{
    autospec struct spec again = SPEC_NONE;
    struct outcome outcome;

    layers_read(*state, &(struct layers){ .flags = { "-ehex=ff" } }, &outcome);
    read_back(&outcome.spec, &again);
    assert_string_equal(again.env.items[0], "hex=ff");
    outcome_free(&outcome);
}

static void json_that_is_no_spec_is_refused_with_its_line(void **state)
{
    static const struct {
        const char *json, *place, *key;
    } cases[] = {
        { "{\n\"user\":\n\"-1\"}", "s:3:", "user" },
        { "{\"images\":[]}", "s:1:", "images" },
        { "{\n\"limits\":{\"timeout\":1.5}}", "s:2:", "limits.timeout" },
        { "{\"files\":{\"read\":[\n\"x\"]}}", "s:2:", "files.read" },
        { "{\"files\":{\"read\":[\n\"~/x\"]}}", "s:2:", "files.read" },
        { "{\"env\":[\"A\"]}", "s:1:", "env" },
        { "{\"tools\":null}", "s:1:", "tools" },
        { "{\"tools\":\"true\"}", "s:1:", "tools" },
        { "{\"volumes\":[{\"source\":\"/a\",\"target\":\"/\"}]}", "s:1:", "volumes" },
        { "{\"volumes\":[\"/a:/b\",\"/c:/b\"]}", "volumes", "'/b'" },
        { "{\"commanx\":[]}", "s:1:", "did you mean command?" },
        { "[]", "s:1:", "mapping" },
        { "1", "s:1:", "mapping" },
        { "{\"a\":1,\n\"a\":2}", "s:2:", "no JSON" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct spec spec = SPEC_NONE;
        struct error err = { 0 };

        if (spec_read_json(cases[i].json, strlen(cases[i].json), "s", &spec, &err) == 0)
            fail_msg("taken: %s", cases[i].json);
        assert_contains(err.text, cases[i].place);
        assert_contains(err.text, cases[i].key);
    }
}

static void a_spec_file_takes_the_place_of_the_owners_and_obeys_the_ceiling(void **state)
{
    const struct unit_scratch *scratch = *state;
    autofree char *file = text_copy(unit_scratch_file(
        scratch, "s.json", "{\"command\":[\"true\"],\"files\":{\"read\":[\"/none/a\"]},\"user\":null}"));
    struct outcome outcome;

    layers_read(scratch, &(struct layers){ .owner = "files: {read: [/none/b]}\n", .flags = { "--spec", file } },
                &outcome);
    if (outcome.result < 0)
        fail_msg("%s", outcome.err->text);
    assert_int_equal(outcome.spec.read.len, 1);
    assert_string_equal(outcome.spec.read.items[0], "/none/a");
    assert_string_equal(outcome.spec.command.items[0], "true");
    outcome_free(&outcome);
    layers_read(scratch, &(struct layers){ .admin = "files: {read: []}\n", .flags = { "--spec", file } },
                &outcome);
    assert_int_equal(outcome.result, -1);
    assert_int_equal(outcome.err->kind, ERROR_REFUSED);
    outcome_free(&outcome);
}

#define ON_SCRATCH(test) cmocka_unit_test_setup_teardown(test, unit_scratch_setup, unit_scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_SCRATCH(the_canonical_form_is_fixed),
        ON_SCRATCH(a_spec_read_back_from_its_json_has_the_same_hash),
        ON_SCRATCH(order_and_repetition_do_not_change_the_hash),
        ON_SCRATCH(every_flag_changes_the_hash),
        ON_SCRATCH(a_variable_named_like_our_own_marks_is_kept),
        cmocka_unit_test(json_that_is_no_spec_is_refused_with_its_line),
        ON_SCRATCH(a_spec_file_takes_the_place_of_the_owners_and_obeys_the_ceiling),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
