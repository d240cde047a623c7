/* Every field against every pair of layers: a lower layer never widens, and where it is narrower
 * it narrows. */

#include "base/array.h"
#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "spec/combine.h"
#include "spec/layer.h"
#include "spec/values.h"
#include "tests/support/unit.h"
#include "tests/unit/spec/unit_layers.h"

#include <unistd.h>

/* A wide and a narrow value of each field that layers combine, as YAML, and how the narrow one is
 * shown.  A field without a row fails the test. */
static const struct sample {
    const char *wide, *narrow, *wide_shown, *narrow_shown;
} samples[FIELD_COUNT] = {
    [FIELD_ROOT] = { "true", "false", "true", "false" },
    [FIELD_SECCOMP] = { "default", "strict", "default", "strict" },
    [FIELD_WORKSPACE] = { "rw", "ro", "rw", "ro" },
    [FIELD_TIMEOUT] = { "2h", "10m", "2h", "10m" },
    [FIELD_MEMORY] = { "4G", "{ max: 1G, hard: true }", "4G", "1G, hard" },
    [FIELD_CPUS] = { "2", "1.5", "2", "1.5" },
    [FIELD_PROCESSES] = { "4000", "{ max: 100, hard: false }", "4000", "100" },
    [FIELD_OPEN_FILES] = { "1024", "64", "1024", "64" },
    [FIELD_FILE_SIZE] = { "1025M", "8K", "1025M", "8K" },
    [FIELD_DISK] = { "10G", "5G", "10G", "5G" },
    [FIELD_INODES] = { "100000", "99999", "100000", "99999" },
    [FIELD_OUTPUT] = { "1G", "1", "1G", "1" },
    [FIELD_ENFORCE] = { "best", "hard", "best", "hard" },
    [FIELD_READ] = { "[/none/such]", "[/none/such/a, /none/such/b]", "[/none/such]",
                     "[/none/such/a, /none/such/b]" },
    [FIELD_WRITE] = { "[/none/such]", "[/none/such/a]", "[/none/such]", "[/none/such/a]" },
    [FIELD_HIDE] = { "[.env]", "[\"*.pem\", .env]", "[.env]", "[*.pem, .env]" },
    [FIELD_VOLUMES] = { "[\"/none/such:/x:cow\"]", "[\"/none/such/a:/x/a:ro\"]", "[/none/such:/x:cow]",
                        "[/none/such/a:/x/a:ro]" },
    [FIELD_NETWORK] = { "open", "none", "open", "none" },
    [FIELD_RULES] = { "[\"*.example.com\"]", "[{host: a.example.com, port: 443}]", "[*.example.com]",
                      "[a.example.com:443]" },
    [FIELD_HOST_SERVICES] = { "[5432, 6379]", "[6379]", "[5432, 6379]", "[6379]" },
    [FIELD_REGISTRIES] = { "[npm, pip]", "[pip]", "[npm, pip]", "[pip]" },
    [FIELD_REGISTRIES_FROM] = { "user", "system", "user", "system" },
    [FIELD_UPSTREAM_PROXY] = { "environment", "none", "environment", "none" },
    [FIELD_PACKAGES] = { "true", "false", "true", "false" },
    [FIELD_BUDGET_BYTES] = { "2G", "1G", "2G", "1G" },
    [FIELD_BUDGET_REQUESTS] = { "1000", "10", "1000", "10" },
    [FIELD_BUDGET_CONNECTIONS] = { "1000", "10", "1000", "10" },
    [FIELD_TOOLS] = { "true", "false", "true", "false" },
    [FIELD_CACHES] = { "true", "false", "true", "false" },
};

static bool combines(const struct field *field)
{
    return field->combine != COMBINE_OWNER && field->combine != COMBINE_IMAGE &&
           field->combine != COMBINE_IMAGES;
}

static void expect(const struct unit_scratch *scratch, const struct field *field, const struct layers *layers,
                   const char *want)
{
    struct outcome outcome;

    layers_read(scratch, layers, &outcome);
    if (layers->repository && !(field->places & PLACE_REPOSITORY)) {
        assert_int_equal(outcome.result, -1);
        assert_non_null(strstr(outcome.err->text, "cannot be said here"));
        outcome_free(&outcome);
        return;
    }
    if (outcome.result < 0)
        fail_msg("%s: %s", field->key, outcome.err->text);

    autofree char *shown = layers_shown(field, &outcome.spec);

    if (strcmp(shown, want) != 0)
        fail_msg("%s is %s and not %s", field->key, shown, want);
    outcome_free(&outcome);
}

static void every_field_that_combines_has_a_sample(void **state)
{
    (void)state;
    for (size_t i = 0; i < FIELD_COUNT; i++)
        assert_int_equal(combines(&fields[i]), samples[i].wide != NULL);
}

static void a_wider_value_below_never_widens(void **state)
{
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        const struct field *field = &fields[i];

        if (!combines(field))
            continue;

        autofree char *wide = layers_yaml(field, samples[i].wide),
                      *narrow = layers_yaml(field, samples[i].narrow);
        autofree char *repository = text_format("policy:\n  %s", wide);

        expect(*state, field, &(struct layers){ .admin = narrow, .owner = wide }, samples[i].narrow_shown);
        expect(*state, field, &(struct layers){ .owner = narrow, .repository = repository },
               samples[i].narrow_shown);
        expect(*state, field, &(struct layers){ .policy = narrow, .repository = repository },
               samples[i].narrow_shown);
        expect(*state, field, &(struct layers){ .admin = narrow, .owner = wide, .repository = repository },
               samples[i].narrow_shown);
    }
}

static void a_narrower_value_below_narrows(void **state)
{
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        const struct field *field = &fields[i];

        if (!combines(field))
            continue;

        autofree char *wide = layers_yaml(field, samples[i].wide),
                      *narrow = layers_yaml(field, samples[i].narrow);
        autofree char *repository = text_format("policy:\n  %s", narrow);

        expect(*state, field, &(struct layers){ .admin = wide, .owner = narrow }, samples[i].narrow_shown);
        expect(*state, field, &(struct layers){ .owner = wide, .repository = repository },
               samples[i].narrow_shown);
        expect(*state, field, &(struct layers){ .policy = wide, .repository = repository },
               samples[i].narrow_shown);
        expect(*state, field, &(struct layers){ .admin = wide, .owner = wide, .repository = repository },
               samples[i].narrow_shown);
    }
}

static void the_same_value_everywhere_is_that_value(void **state)
{
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        const struct field *field = &fields[i];

        if (!combines(field))
            continue;

        autofree char *wide = layers_yaml(field, samples[i].wide);
        autofree char *repository = text_format("policy:\n  %s", wide);

        expect(*state, field, &(struct layers){ .admin = wide, .policy = wide, .repository = repository },
               samples[i].wide_shown);
    }
}

/* With nobody else asking, a layer of grants makes nothing visible: the administrator's is a
 * ceiling, the repository's can only take away. */
static void a_ceiling_grants_nothing(void **state)
{
    static const enum field_id grants[] = { FIELD_READ,  FIELD_WRITE,         FIELD_VOLUMES,
                                            FIELD_RULES, FIELD_HOST_SERVICES, FIELD_REGISTRIES };

    for (size_t i = 0; i < ARRAY_LEN(grants); i++) {
        const struct field *field = &fields[grants[i]];
        autofree char *wide = layers_yaml(field, samples[grants[i]].wide);
        autofree char *repository = text_format("policy:\n  %s", wide);

        expect(*state, field, &(struct layers){ .admin = wide }, "[]");
        expect(*state, field, &(struct layers){ .repository = repository }, "[]");
    }
}

/* What the owner asks for on this command line is refused, not cut, and both places are named. */
static void more_than_the_ceiling_on_the_command_line_is_refused(void **state)
{
    const struct unit_scratch *scratch = *state;

    for (size_t i = 0; i < FIELD_COUNT; i++) {
        const struct field *field = &fields[i];
        struct outcome outcome;

        if (!combines(field) || field->combine == COMBINE_UNION)
            continue;

        autofree char *wide = layers_yaml(field, samples[i].wide),
                      *narrow = layers_yaml(field, samples[i].narrow);

        layers_read(scratch, &(struct layers){ .admin = narrow, .policy = wide }, &outcome);
        assert_int_equal(outcome.result, -1);
        assert_int_equal(outcome.err->kind, ERROR_REFUSED);
        assert_contains(outcome.err->text, "policy.yaml:1");
        assert_contains(outcome.err->text, "admin.yaml:1");
        assert_contains(outcome.err->text, field->key);
        assert_contains(outcome.err->text, samples[i].wide_shown);
        outcome_free(&outcome);
    }
}

static void flags_above_the_ceiling_are_refused(void **state)
{
    static const struct {
        const char *admin, *flag, *value;
    } cases[] = {
        { "limits: {timeout: 1h}", "--timeout", "2h" },
        { "limits: {timeout: 1h}", "--timeout", "none" },
        { "limits: {memory: 1G}", "--memory", "1025M" },
        { "limits: {cpus: 1.5}", "--cpus", "none" },
        { "limits: {processes: 100}", "--processes", "101" },
        { "limits: {enforce: hard}", "--enforce", "best" },
        { "seccomp: strict", "--seccomp", "default" },
        { "workspace: live", "--workspace", "rw" },
        { "workspace: cow", "--workspace", "rw" },
        { "workspace: cow", "--workspace", "live" },
        { "workspace: ro", "--workspace", "cow" },
        { "root: false", "--user", "root" },
        { "root: false", "--user", "0" },
        { "root: false", "--user", "0:5" },
        { "root: false", "--root", NULL },
        { "images: [host]", "--image", "/srv/image" },
        { "images: [/srv/images]", "--image", "host" },
        { "images: []", "--image", "host" },
        { "files: {read: [/none/a]}", "--read", "/none/b" },
        { "files: {read: [/none/a]}", "--read", "/none" },
        { "files: {read: [/none/a]}", "--read", "/none/ab" },
        { "files: {read: [/none/a]}", "--read", "/none/a/../b" },
        { "files: {read: []}", "--read", "/none/a" },
        { "files: {write: []}", "--write", "/none/a" },
        { "volumes: []", "--volume", "/none/a:/x:ro" },
        { "network: {mode: none}", "--network", "open" },
        { "network: {mode: rules}", "--network", "open" },
        { "network: {rules: []}", "--allow", "a.test" },
        { "network: {rules: []}", "--network", "open" },
        { "network: {rules: []}", "--registry", "npm" },
        { "network: {rules: [\"*.a.test\"]}", "--allow", "a.test" },
        { "network: {rules: [a.test]}", "--allow", "b.test" },
        { "network: {rules: [a.test]}", "--allow", "*.a.test" },
        { "network: {rules: [a.test]}", "--allow", "a.test:22" },
        { "network: {rules: [\"a.test:443\"]}", "--allow", "a.test" },
        { "network: {rules: [\"*\"]}", "--allow", "10.0.0.5:80" },
        { "network: {mode: open}", "--allow", "10.0.0.5:80" },
        { "network: {mode: open, rules: [{host: b.test, action: deny}]}", "--allow", "b.test" },
        { "network: {rules: [\"*\", {host: b.test, action: deny}]}", "--allow", "b.test:443" },
        { "network: {registries: [pip]}", "--registry", "npm" },
        { "network: {host-services: [5432]}", "--host-service", "6379" },
        { "network: {rules: [a.test]}", "--host-service", "6379" },
        { "volumes: [\"/none/a:/x:ro\"]", "--volume", "/none/a:/y:cow" },
        /* One list is a ceiling for the others where they come to the same. */
        { "files: {read: [/none/a]}", "--write", "/none/b" },
        { "files: {read: [/none/a]}", "--volume", "/none/b:/x:ro" },
        { "files: {write: [/none/a]}", "--volume", "/none/b:/x:cow" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct outcome outcome;

        layers_read(*state,
                    &(struct layers){ .admin = cases[i].admin, .flags = { cases[i].flag, cases[i].value } },
                    &outcome);
        if (outcome.result == 0)
            fail_msg("%s %s under %s", cases[i].flag, cases[i].value ? cases[i].value : "", cases[i].admin);
        assert_int_equal(outcome.err->kind, ERROR_REFUSED);
        assert_contains(outcome.err->text, cases[i].flag);
        assert_contains(outcome.err->text, "admin.yaml:1");
        outcome_free(&outcome);
    }
}

static void flags_below_the_ceiling_hold(void **state)
{
    static const struct {
        const char *admin, *flag, *value;
        enum field_id field;
        const char *want;
    } cases[] = {
        { "limits: {timeout: 1h}", "--timeout", "59m", FIELD_TIMEOUT, "59m" },
        { "limits: {memory: {max: 4G, hard: true}}", "--memory", "2G", FIELD_MEMORY, "2G, hard" },
        { "limits: {timeout: none}", "--timeout", "59m", FIELD_TIMEOUT, "59m" },
        { "seccomp: default", "--seccomp", "strict", FIELD_SECCOMP, "strict" },
        { "workspace: rw", "--workspace", "rw", FIELD_WORKSPACE, "rw" },
        { "workspace: live", "--workspace", "ro", FIELD_WORKSPACE, "ro" },
        { "workspace: cow", "--workspace", "copy", FIELD_WORKSPACE, "copy" },
        { "root: false", "--user", "5", FIELD_USER, "5" },
        { "root: true", "--root", NULL, FIELD_USER, "root" },
        { "images: [host, /none/images]", "--image", "/none/images/x", FIELD_IMAGE, "/none/images/x" },
        { "files: {read: [/none/a]}", "--read", "/none/a", FIELD_READ, "[/none/a]" },
        { "files: {read: [/none/a]}", "--read", "/none/a/b", FIELD_READ, "[/none/a/b]" },
        { "files: {read: [/]}", "--read", "/none", FIELD_READ, "[/none]" },
        { "files: {write: [/none/a]}", "--read", "/none/b", FIELD_READ, "[/none/b]" },
        { "files: {read: [/none/a]}", "--write", "/none/a/b", FIELD_WRITE, "[/none/a/b]" },
        { "files: {write: [/none/a]}", "--volume", "/none/b:/x:ro", FIELD_VOLUMES, "[/none/b:/x:ro]" },
        { "volumes: [\"/none/a:/x\"]", "--volume", "/none/a/b:/y", FIELD_VOLUMES, "[/none/a/b:/y:cow]" },
        { "files: {hide: [a]}", "--hide", "b", FIELD_HIDE, "[a, b]" },
        { "{}", "--no-tools", NULL, FIELD_TOOLS, "false" },
        { "network: {mode: open}", "--network", "open", FIELD_NETWORK, "open" },
        { "network: {mode: open, rules: [{host: b.test, action: deny}]}", "--network", "open", FIELD_NETWORK,
          "open" },
        { "network: {mode: open, rules: [{host: b.test, action: deny}]}", "--allow", "a.test:22", FIELD_RULES,
          "[a.test:22, deny b.test]" },
        { "network: {rules: [\"*.a.test\", {host: b.a.test, action: deny}]}", "--allow", "*.a.test",
          FIELD_RULES, "[*.a.test, deny b.a.test]" },
        { "network: {rules: [\"*.a.test\"]}", "--allow", "b.a.test:443", FIELD_RULES, "[b.a.test:443]" },
        { "network: {rules: [\"*\"]}", "--allow", "a.test", FIELD_RULES, "[a.test]" },
        { "network: {rules: [\"10.0.0.5:80\"]}", "--allow", "10.0.0.5:80", FIELD_RULES, "[10.0.0.5:80]" },
        { "network: {rules: [{host: db.test, port: 5432, address: 10.0.0.5}]}", "--allow", "db.test:5432",
          FIELD_RULES, "[db.test:5432 at 10.0.0.5]" },
        { "network: {registries: [pip]}", "--registry", "pip", FIELD_REGISTRIES, "[pip]" },
        { "network: {host-services: [5432]}", "--host-service", "5432", FIELD_HOST_SERVICES, "[5432]" },
        { "network: {rules: [a.test], registries: [pip]}", "--registry", "pip", FIELD_REGISTRIES_FROM,
          "system" },
        { "network: {rules: [a.test], registries-from: user}", "--allow", "a.test", FIELD_REGISTRIES_FROM,
          "user" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        expect(*state, &fields[cases[i].field],
               &(struct layers){ .admin = cases[i].admin, .flags = { cases[i].flag, cases[i].value } },
               cases[i].want);
}

/* Only the owner says these; in another layer they are errors that name the place. */
static void what_only_the_owner_says_is_refused_elsewhere(void **state)
{
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        autofree char *yaml = layers_yaml(&fields[i], "x");
        autofree char *repository = text_format("policy:\n  %s", yaml);
        const struct layers in[] = { { .admin = yaml }, { .owner = yaml }, { .repository = repository } };
        const unsigned places[] = { PLACE_ADMIN, PLACE_OWNER, PLACE_REPOSITORY };

        for (size_t j = 0; j < ARRAY_LEN(in); j++) {
            struct outcome outcome;

            if (fields[i].places & places[j])
                continue;
            layers_read(*state, &in[j], &outcome);
            assert_int_equal(outcome.result, -1);
            assert_int_equal(outcome.err->kind, ERROR_INVALID);
            assert_contains(outcome.err->text, j == 2 ? "cove.yaml:2:" : ".yaml:1:");
            assert_contains(outcome.err->text, fields[i].key);
            outcome_free(&outcome);
        }
    }
}

static void a_default_obeys_the_ceiling(void **state)
{
    expect(*state, &fields[FIELD_TIMEOUT], &(struct layers){ .admin = "limits: {timeout: 1h}" }, "1h");
    expect(*state, &fields[FIELD_TOOLS], &(struct layers){ .admin = "tools: false" }, "false");
    expect(*state, &fields[FIELD_SECCOMP], &(struct layers){ .admin = "seccomp: strict" }, "strict");
    expect(*state, &fields[FIELD_HIDE], &(struct layers){ .admin = "files: {hide: [.env]}" }, "[.env]");
}

/* From the most to the least permissive, and every pair of them in every pair of layers. */
static void of_two_ways_to_see_the_workspace_the_narrower_holds(void **state)
{
    const struct field *field = &fields[FIELD_WORKSPACE];

    for (size_t i = 0; field->choices[i]; i++)
        for (size_t j = 0; field->choices[j]; j++) {
            const char *want = field->choices[i > j ? i : j];
            autofree char *one = layers_yaml(field, field->choices[i]),
                          *other = layers_yaml(field, field->choices[j]);
            autofree char *repository = text_format("policy:\n  %s", other);

            expect(*state, field, &(struct layers){ .admin = one, .owner = other }, want);
            expect(*state, field, &(struct layers){ .owner = one, .repository = repository }, want);
            expect(*state, field,
                   &(struct layers){ .admin = one, .owner = "workspace: rw", .repository = repository }, want);
        }
    expect(*state, field, &(struct layers){ .admin = "workspace: rw" }, "cow");
    expect(*state, field, &(struct layers){ .repository = "policy: {workspace: rw}" }, "cow");
}

static void an_image_outside_the_ceiling_is_refused_by_whoever_says_so(void **state)
{
    static const struct layers cases[] = {
        { .admin = "images: [/none/a]" },
        { .admin = "images: [/none/a]", .owner = "image: /none/b" },
        { .admin = "images: [/none/a]", .owner = "image: /none/ab" },
        { .owner = "images: [/none/a]", .flags = { "--image", "host" } },
        { .repository = "policy: {images: [/none/a]}" },
        { .owner = "image: /none/a", .repository = "policy: {images: [host]}" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct outcome outcome;

        layers_read(*state, &cases[i], &outcome);
        assert_int_equal(outcome.result, -1);
        assert_int_equal(outcome.err->kind, ERROR_REFUSED);
        assert_contains(outcome.err->text, ".yaml:1");
        outcome_free(&outcome);
    }
}

/* A link in an allowed directory is no way out of it, and a link to one is a way in. */
static void ceilings_follow_links(void **state)
{
    const struct unit_scratch *scratch = *state;
    struct outcome outcome;

    unit_scratch_dir(scratch, "allowed", 0700);
    unit_scratch_dir(scratch, "secret", 0700);
    assert_int_equal(symlinkat("../secret", scratch->dir, "allowed/out"), 0);
    assert_int_equal(symlinkat("allowed", scratch->dir, "in"), 0);

    autofree char *admin = text_format("files: {read: [%s/allowed]}", scratch->path);
    autofree char *out = text_format("%s/allowed/out", scratch->path),
                  *in = text_format("%s/in", scratch->path);

    layers_read(scratch, &(struct layers){ .admin = admin, .flags = { "--read", out } }, &outcome);
    assert_int_equal(outcome.result, -1);
    outcome_free(&outcome);
    layers_read(scratch, &(struct layers){ .admin = admin, .flags = { "--read", in } }, &outcome);
    assert_int_equal(outcome.result, 0);
    outcome_free(&outcome);

    autofree char *owner = text_format("files: {read: [%s/allowed]}", scratch->path);
    autofree char *repository = text_format("policy: {files: {read: [%s/allowed/out]}}", scratch->path);

    expect(scratch, &fields[FIELD_READ], &(struct layers){ .owner = owner, .repository = repository }, "[]");
}

/* All ceilings over a small set of paths against all grants over it. */

static const char *const path_sets[][2] = { { NULL }, { "/none/a" }, { "/none" }, { "/none/a", "/none/b" } };

static void fill(struct spec *spec, unsigned code, enum tree_mode mode)
{
    for (size_t i = 0; i < 2; i++) {
        const char *read = path_sets[code % 4][i], *write = path_sets[code / 4 % 4][i];
        const char *volume = path_sets[code / 16 % 4][i];

        if (read)
            strings_add(&spec->read, read);
        if (write)
            strings_add(&spec->write, write);
        if (volume)
            volumes_add(&spec->volumes, volume, i ? "/y" : "/x", mode);
    }
}

static bool shows(const struct spec *spec, const char *path, bool writable)
{
    for (size_t i = 0; i < spec->read.len && !writable; i++)
        if (path_within(path, spec->read.items[i]))
            return true;
    for (size_t i = 0; i < spec->write.len; i++)
        if (path_within(path, spec->write.items[i]))
            return true;
    for (size_t i = 0; i < spec->volumes.len; i++)
        if (path_within(path, spec->volumes.items[i].source) &&
            (!writable || spec->volumes.items[i].mode == TREE_COW))
            return true;
    return false;
}

/* `said` has a bit for each of read, write, volumes that the ceiling says. */
static void check_grants(unsigned owner, unsigned bound, unsigned said, enum tree_mode mode)
{
    static const char *const probes[] = { "/none", "/none/a", "/none/a/x", "/none/b", "/none/c", "/other" };
    static const enum field_id grants[] = { FIELD_READ, FIELD_WRITE, FIELD_VOLUMES };
    struct layer ceiling = { .kind = LAYER_ADMIN };
    struct spec before = SPEC_NONE, after = SPEC_NONE;

    fill(&before, owner, TREE_COW);
    fill(&after, owner, TREE_COW);
    fill(&ceiling.values, bound, mode);
    for (size_t i = 0; i < ARRAY_LEN(grants); i++) {
        if (said & 1U << i)
            ceiling.said[grants[i]] = text_copy("here");
        else
            value_free(&fields[grants[i]], &ceiling.values);
    }
    for (size_t i = 0; i < ARRAY_LEN(grants); i++)
        combine_narrow(&fields[grants[i]], &ceiling, &after);
    for (size_t i = 0; i < ARRAY_LEN(probes); i++) {
        for (unsigned writable = 0; writable < 2; writable++) {
            bool shown = shows(&after, probes[i], writable);

            assert_false(shown && !shows(&before, probes[i], writable));
            if (said & 1U)
                assert_false(shown && !shows(&ceiling.values, probes[i], false));
            if (writable && (said & 2U))
                assert_false(shown && !shows(&ceiling.values, probes[i], true));
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(grants); i++) /* a second time changes nothing */
        assert_null(combine_narrow(&fields[grants[i]], &ceiling, &after));
    spec_free(&before);
    spec_free(&after);
    layer_free(&ceiling);
}

static void no_ceiling_lets_more_through_than_it_says(void **state)
{
    (void)state;
    for (unsigned owner = 0; owner < 64; owner++)
        for (unsigned bound = 0; bound < 64; bound++)
            for (unsigned said = 0; said < 8; said++)
                check_grants(owner, bound, said, (owner + bound) % 2 ? TREE_RO : TREE_COW);
}

#define ON_SCRATCH(test) cmocka_unit_test_setup_teardown(test, unit_scratch_setup, unit_scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_that_combines_has_a_sample),
        ON_SCRATCH(a_wider_value_below_never_widens),
        ON_SCRATCH(a_narrower_value_below_narrows),
        ON_SCRATCH(the_same_value_everywhere_is_that_value),
        ON_SCRATCH(a_ceiling_grants_nothing),
        ON_SCRATCH(more_than_the_ceiling_on_the_command_line_is_refused),
        ON_SCRATCH(flags_above_the_ceiling_are_refused),
        ON_SCRATCH(flags_below_the_ceiling_hold),
        ON_SCRATCH(what_only_the_owner_says_is_refused_elsewhere),
        ON_SCRATCH(a_default_obeys_the_ceiling),
        ON_SCRATCH(of_two_ways_to_see_the_workspace_the_narrower_holds),
        ON_SCRATCH(an_image_outside_the_ceiling_is_refused_by_whoever_says_so),
        ON_SCRATCH(ceilings_follow_links),
        cmocka_unit_test(no_ceiling_lets_more_through_than_it_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
