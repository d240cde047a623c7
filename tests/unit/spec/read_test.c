/* What stands in files and on the command line, and what happens to files that cannot be believed. */

#include "base/array.h"
#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "tests/support/unit.h"
#include "tests/unit/spec/unit_layers.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Reads layers that must fail and gives the error's text, valid until the next call. */
static const char *failure(const struct unit_scratch *scratch, const struct layers *layers,
                           enum error_kind kind)
{
    static char text[sizeof((struct error *)0)->text];
    struct outcome outcome;

    layers_read(scratch, layers, &outcome);
    if (outcome.result == 0)
        fail_msg("taken: %s%s%s", layers->admin ? layers->admin : "", layers->owner ? layers->owner : "",
                 layers->repository ? layers->repository : "");
    memcpy(text, outcome.err->text, sizeof text);
    if (outcome.err->kind != kind)
        fail_msg("another kind of error: %s", text);
    outcome_free(&outcome);
    return text;
}

static void nothing_said_gives_the_defaults(void **state)
{
    struct outcome outcome;

    layers_read(*state, &(struct layers){ 0 }, &outcome);
    assert_int_equal(outcome.result, 0);
    assert_string_equal(outcome.spec.image, "host");
    assert_string_equal(outcome.spec.directory, ".");
    assert_null(outcome.spec.cwd);
    assert_null(outcome.spec.user);
    assert_int_equal(outcome.spec.profile, PROFILE_DEFAULT);
    assert_int_equal(outcome.spec.terminal, TERMINAL_AUTO);
    assert_int_equal(outcome.spec.timeout_ms, 0);
    assert_true(outcome.spec.tools && outcome.spec.caches && outcome.spec.root && !outcome.spec.remove);
    assert_int_equal(outcome.spec.read.len + outcome.spec.write.len + outcome.spec.volumes.len, 0);
    assert_int_equal(outcome.origins.len, 0);
    outcome_free(&outcome);
}

/* The file is put where `layers` says; the message must have all parts. */
static void a_mistake_is_reported_with_file_line_key_value_and_what_is_allowed(void **state)
{
    static const struct {
        const char *yaml, *line, *key, *value, *allowed;
    } cases[] = {
        { "\nlimits:\n  timeout: 5x\n", ":3:", "limits.timeout", "'5x'", "30m" },
        { "limits: {timeout: 99999h}\n", ":1:", "limits.timeout", "'99999h'", "366d" },
        { "limits: {timeout: -1}\n", ":1:", "limits.timeout", "'-1'", "30m" },
        { "limits: {timeout: 1.5}\n", ":1:", "limits.timeout", "'1.5'", "30m" },
        { "limits: {memory: 4X}\n", ":1:", "limits.memory", "'4X'", "4G" },
        { "limits: {memory: 4k}\n", ":1:", "limits.memory", "'4k'", "4G" },
        { "limits: {memory: 0}\n", ":1:", "limits.memory", "'0'", "more than nothing" },
        { "limits: {memory: 1M}\n", ":1:", "limits.memory", "'1M'", "from 8M to 1P" },
        { "limits: {memory: 99999999999P}\n", ":1:", "limits.memory", "'99999999999P'", "4G" },
        { "limits: {memory: {max: 4G, soft: true}}\n", ":1:", "limits.memory", "a mapping", "no other" },
        { "limits: {memory: {hard: true}}\n", ":1:", "limits.memory", "a mapping", "key max" },
        { "limits: {cpus: 1.2345}\n", ":1:", "limits.cpus", "'1.2345'", "1.5" },
        { "limits: {cpus: 1.}\n", ":1:", "limits.cpus", "'1.'", "1.5" },
        { "limits: {cpus: .5}\n", ":1:", "limits.cpus", "'.5'", "1.5" },
        { "limits: {processes: 1.5}\n", ":1:", "limits.processes", "'1.5'", "whole" },
        { "limits: {processes: 2K}\n", ":1:", "limits.processes", "'2K'", "whole" },
        { "limits: {timeout: [1]}\n", ":1:", "limits.timeout", "a list", "text" },
        { "limits: {timeout: }\n", ":1:", "limits.timeout", "nothing", "text" },
        { "limits: 5\n", ":1:", "limits", "'5'", "mapping" },
        { "limits: {timeuot: 5m}\n", ":1:", "limits.timeuot", "'5m'", "did you mean limits.timeout?" },
        { "timeout: 5m\n", ":1:", "timeout", "'5m'", "did you mean limits.timeout?" },
        { "limits.timeout: 5m\n", ":1:", "limits.timeout", "'5m'", "does not exist" },
        { "filez: {}\n", ":1:", "filez", "a mapping",
          "a key that does not exist (did you mean files?); cove-policy(5) lists all" },
        { "nothing: 1\n", ":1:", "nothing", "'1'", "a key that does not exist; cove-policy(5) lists all" },
        { "tools: yes\n", ":1:", "tools", "'yes'", "true or false" },
        { "tools: \"true\"\n", ":1:", "tools", "'true'", "true or false" },
        { "tools: 1\n", ":1:", "tools", "'1'", "true or false" },
        { "tools:\n", ":1:", "tools", "nothing", "true or false" },
        { "secomp: 1\n", ":1:", "secomp", "'1'", "did you mean seccomp?" },
        { "seccomp: strct\n", ":1:", "seccomp", "'strct'", "default, strict (did you mean strict?)" },
        { "seccomp: true\n", ":1:", "seccomp", "'true'", "text" },
        { "files:\n  read: /x\n", ":2:", "files.read", "'/x'", "list" },
        { "files:\n  read:\n", ":2:", "files.read", "nothing", "list" },
        { "files:\n  read:\n  - /x\n  - y\n", ":4:", "files.read", "'y'", "absolute" },
        { "files:\n  read:\n  - /x\n  - [y]\n", ":4:", "files.read", "a list", "text" },
        { "files:\n  read:\n  - /x\n  - ~root/y\n", ":4:", "files.read", "'~root/y'", "another user" },
        { "files:\n  read:\n  - \"\"\n", ":3:", "files.read", "''", "empty" },
        { "files:\n  hide: [../x]\n", ":2:", "files.hide", "'../x'", ".." },
        { "files: []\n", ":1:", "files", "a list", "mapping" },
        { "volumes:\n- /a\n", ":2:", "volumes", "'/a'", "SRC:DST" },
        { "volumes:\n- /a:/b:rw\n", ":2:", "volumes", "'/a:/b:rw'", "cow" },
        { "volumes:\n- {source: /a}\n", ":2:", "volumes", "a mapping", "target" },
        { "volumes:\n- {source: /a, target: /b, mood: ro}\n", ":2:", "volumes", "a mapping", "mode" },
        { "images: host\n", ":1:", "images", "'host'", "list" },
        { "images: [debian]\n", ":1:", "images", "'debian'", "directory" },
        { "root: {}\n", ":1:", "root", "a mapping", "true or false" },
        { "\x22\\e[31m\x22: 1\n", ":1:", "\\x1b[31m", "'1'", "does not exist" },
        { "seccomp: \x22\\e[2J\x22\n", ":1:", "seccomp", "'\\x1b[2J'", "default" },
        { "[]\n", ":1:", "the whole file", "a list", "mapping" },
        { "x\n", ":1:", "the whole file", "'x'", "mapping" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct layers in[] = { { .admin = cases[i].yaml },
                                     { .owner = cases[i].yaml },
                                     { .policy = cases[i].yaml } };
        static const char *const names[] = { "admin.yaml", "owner.yaml", "policy.yaml" };

        for (size_t j = 0; j < ARRAY_LEN(in); j++) {
            const char *text = failure(*state, &in[j], ERROR_INVALID);
            autofree char *place = text_format("%s%s", names[j], cases[i].line);

            assert_contains(text, place);
            assert_contains(text, cases[i].key);
            assert_contains(text, cases[i].value);
            assert_contains(text, cases[i].allowed);
            assert_null(strchr(text, '\x1b'));
        }
    }
}

static void mistakes_of_a_repository_are_reported_too(void **state)
{
    static const struct {
        const char *yaml, *place, *key;
    } cases[] = {
        { "policy: {tools: x}\n", "cove.yaml:1:", "policy.tools" },
        { "policy:\n  env: {A: 1}\n", "cove.yaml:2:", "policy.env" },
        { "policy:\n  image: /x\n", "cove.yaml:2:", "policy.image" },
        { "policy:\n  user: root\n", "cove.yaml:2:", "policy.user" },
        { "policy: []\n", "cove.yaml:1:", "policy" },
        { "policy:\n", "cove.yaml:1:", "policy" },
        { "tools: false\n", "cove.yaml:1:", "tools" },
        { "wishes: {imagee: x}\n", "cove.yaml:1:", "did you mean wishes.image?" },
        { "wishes: {image: [x]}\n", "cove.yaml:1:", "wishes.image" },
        { "wishes: {files: x}\n", "cove.yaml:1:", "wishes.files" },
        { "wishes: x\n", "cove.yaml:1:", "wishes" },
        { "", "cove.yaml:1:", "empty" },
        { "\xef\xbb\xbf{}\n", "cove.yaml:1:", "byte order mark" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *text = failure(*state, &(struct layers){ .repository = cases[i].yaml }, ERROR_INVALID);

        assert_contains(text, cases[i].place);
        assert_contains(text, cases[i].key);
    }
}

static void a_list_of_a_repository_is_bounded(void **state)
{
    autotext struct text yaml = TEXT_NONE;

    text_add(&yaml, "policy:\n  files:\n    hide: [x");
    for (int i = 0; i < 1024; i++)
        text_addf(&yaml, ",x%d", i);
    text_add(&yaml, "]\n");

    const char *text = failure(*state, &(struct layers){ .repository = text_string(&yaml) }, ERROR_INVALID);

    assert_contains(text, "cove.yaml:3: policy.files.hide");
    assert_contains(text, "1024");
}

static void wishes_are_noted_and_grant_nothing(void **state)
{
    static const char yaml[] = "wishes:\n  image: /srv/x\n  setup: [make]\n  services: {db: x}\n  ports: [80]\n"
                               "  outputs: [out]\n  env: {A: \"1\"}\n";
    struct outcome with, without;
    char hash[65], plain[65];

    layers_read(*state, &(struct layers){ .repository = yaml }, &with);
    layers_read(*state, &(struct layers){ 0 }, &without);
    assert_int_equal(with.result, 0);
    assert_int_equal(with.origins.notes.len, 6);
    assert_contains(with.origins.notes.items[0], "cove.yaml:2: wishes.image");
    spec_hash(&with.spec, hash);
    spec_hash(&without.spec, plain);
    assert_string_equal(hash, plain);
    outcome_free(&with);
    outcome_free(&without);
}

static void a_flag_that_makes_no_sense_is_named_with_its_value(void **state)
{
    static const struct {
        const char *flag, *value, *allowed;
    } cases[] = {
        { "--user", "root\n", "NUMBER" },     { "--user", "", "NUMBER" },        { "--timeout", "soon", "30m" },
        { "--hostname", "a b", "host name" }, { "--seccomp", "off", "strict" },  { "--env", "=x", "KEY" },
        { "--volume", "/a", "SRC:DST" },      { "--image", "debian", "./NAME" }, { "--read", "", "empty" },
        { "--hide", "../x", ".." },           { "--workdir", "", "empty" },      { "--directory", "", "empty" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *text =
            failure(*state, &(struct layers){ .flags = { cases[i].flag, cases[i].value } }, ERROR_INVALID);

        assert_true(text_starts(text, cases[i].flag));
        assert_contains(text, cases[i].allowed);
        assert_null(strchr(text, '\n'));
    }
}

static void flags_win_over_files_and_lists_add_up(void **state)
{
    struct outcome outcome;

    layers_read(
        *state,
        &(struct layers){ .owner = "hostname: a\nfiles: {read: [/none/1, ~/x]}\nenv: {A: 1, B: true, LANG: }\n",
                          .policy = "hostname: b\nfiles: {read: [/none/2]}\nenv: [C=3]\n",
                          .flags = { "--hostname", "c", "--read", "rel", "-e", "A=2", "-eB=x", "-e", "GONE" } },
        &outcome);
    assert_int_equal(outcome.result, 0);
    assert_string_equal(outcome.spec.hostname, "c");
    assert_int_equal(outcome.spec.read.len, 4);
    assert_string_equal(outcome.spec.read.items[0], "/home/me/x");
    assert_string_equal(outcome.spec.read.items[3], "/work/dir/rel");

    static const char *const env[] = { "A=2", "B=x", "C=3", "LANG=C.UTF-8" };

    assert_int_equal(outcome.spec.env.len, ARRAY_LEN(env));
    for (size_t i = 0; i < ARRAY_LEN(env); i++)
        assert_string_equal(outcome.spec.env.items[i], env[i]);
    outcome_free(&outcome);
}

static void an_env_file_is_read_line_by_line(void **state)
{
    const struct unit_scratch *scratch = *state;
    autofree char *file =
        text_copy(unit_scratch_file(scratch, "env", "# comment\n\nA=1\r\nB=\"x y\"\nLANG\nGONE\nC=#no"));
    struct outcome outcome;

    layers_read(scratch, &(struct layers){ .flags = { "--env-file", file, "-e", "A=2" } }, &outcome);
    assert_int_equal(outcome.result, 0);

    static const char *const env[] = { "A=2", "B=\"x y\"", "C=#no", "LANG=C.UTF-8" };

    assert_int_equal(outcome.spec.env.len, ARRAY_LEN(env));
    for (size_t i = 0; i < ARRAY_LEN(env); i++)
        assert_string_equal(outcome.spec.env.items[i], env[i]);
    outcome_free(&outcome);

    unit_scratch_file(scratch, "env", "A=1\nB C=2\n");
    assert_contains(failure(scratch, &(struct layers){ .flags = { "--env-file", file } }, ERROR_INVALID),
                    "env:2:");
    assert_contains(failure(scratch, &(struct layers){ .flags = { "--env-file", "/none/such" } }, ERROR_SYSTEM),
                    "/none/such");
}

static void a_volume_may_have_any_character(void **state)
{
    struct outcome outcome;

    layers_read(
        *state,
        &(struct layers){ .owner = "volumes:\n- {source: \"/a:b\\\\\", target: /x, mode: ro}\n- '/c\\:d:/y'\n",
                          .flags = { "-v", "/e f\n\xff:/z:ro" } },
        &outcome);
    assert_int_equal(outcome.result, 0);
    assert_int_equal(outcome.spec.volumes.len, 3);
    assert_string_equal(outcome.spec.volumes.items[0].source, "/a:b\\");
    assert_string_equal(outcome.spec.volumes.items[1].source, "/c:d");
    assert_string_equal(outcome.spec.volumes.items[2].source, "/e f\n\xff");
    outcome_free(&outcome);
    assert_contains(
        failure(*state, &(struct layers){ .flags = { "-v", "/a:/x", "-v", "/b:/x/" } }, ERROR_INVALID), "'/x'");
}

static void services_have_names_and_bounds(void **state)
{
    static const struct {
        const char *yaml, *about;
    } wrong[] = {
        { "services: db\n", "list" },
        { "services: [[a]]\n", "mapping" },
        { "services: [{ready: x}]\n", "run" },
        { "services: [{run: x, wait: y}]\n", "within" },
        { "services: [{run: \"\"}]\n", "empty" },
        { "services: [{run: x, name: Big}]\n", "small letters" },
        { "services: [{run: x, within: 2h}]\n", "1h" },
        { "services: [{run: x, within: soon}]\n", "duration" },
    };
    struct outcome outcome;

    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        assert_contains(failure(*state, &(struct layers){ .owner = wrong[i].yaml }, ERROR_INVALID),
                        wrong[i].about);
    assert_contains(failure(*state, &(struct layers){ .admin = "services: [a]\n" }, ERROR_INVALID), "services");
    assert_contains(
        failure(*state, &(struct layers){ .repository = "policy: {services: [a]}\n" }, ERROR_INVALID),
        "services");
    layers_read(
        *state,
        &(struct layers){ .owner = "services:\n- {name: db, run: old}\n- (cd /)\n"
                                   "- {name: db, run: postgres, ready: pg_isready, within: 5s}\n",
                          .flags = { "--service", "/usr/bin/Python3.11 -m x", "--service", "python311 y" } },
        &outcome);
    assert_int_equal(outcome.result, 0);

    const struct services *services = &outcome.spec.services;

    assert_int_equal(services->len, 4);
    assert_string_equal(services->items[0].name, "service");
    assert_string_equal(services->items[1].ready, "pg_isready");
    assert_int_equal(services->items[1].within_ms, 5000);
    assert_string_equal(services->items[2].name, "python311");
    assert_string_equal(services->items[3].name, "python311-2");
    assert_int_equal(services->items[3].within_ms, SERVICE_WITHIN_MS);
    assert_int_equal(services_find(services, "db"), 1);
    outcome_free(&outcome);
}

static void a_repository_cannot_take_root_from_one_who_asked_for_it_in_silence(void **state)
{
    const char *text =
        failure(*state, &(struct layers){ .flags = { "--root" }, .repository = "policy: {root: false}\n" },
                ERROR_REFUSED);

    assert_contains(text, "--root");
    assert_contains(text, "cove.yaml:1");
}

static void a_flag_that_asks_for_something_where_nothing_is_reached_is_a_mistake(void **state)
{
    static const char *const flags[][2] = { { "--allow", "a.test" },
                                            { "--registry", "npm" },
                                            { "--host-service", "5432" },
                                            { "--record", "/none/r" },
                                            { "--replay", "/none/r" } };
    struct outcome outcome;

    for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
        const char *text =
            failure(*state, &(struct layers){ .flags = { "--network", "none", flags[i][0], flags[i][1] } },
                    ERROR_INVALID);

        assert_contains(text, flags[i][0]);
        assert_contains(text, "--network");
    }
    /* What a file allows elsewhere is no mistake. */
    layers_read(*state,
                &(struct layers){ .owner = "network: {rules: [a.test], registries: [npm]}\n",
                                  .flags = { "--network", "none" } },
                &outcome);
    assert_int_equal(outcome.result, 0);
    outcome_free(&outcome);
}

static void who_said_what_is_on_record(void **state)
{
    struct outcome outcome;
    autotext struct text shown = TEXT_NONE, json = TEXT_NONE;

    layers_read(
        *state,
        &(struct layers){ .admin = "limits: {timeout: 1h}\n",
                          .owner = "limits: {timeout: 2h}\n",
                          .flags = { "--read", "/none" },
                          .repository = "policy:\n  limits: {timeout: 3h}\n  files: {read: [/none/a]}\n" },
        &outcome);
    assert_int_equal(outcome.result, 0);
    spec_origins_show(&outcome.origins, &outcome.spec, &shown);
    assert_contains(text_string(&shown), "limits.timeout: 1h\n");
    assert_contains(text_string(&shown), "admin.yaml:1: 1h (administrator at most)");
    assert_contains(text_string(&shown), "owner.yaml:1: 2h (owner, cut");
    assert_contains(text_string(&shown), "cove.yaml:2: 3h (repository, without effect");
    assert_contains(text_string(&shown), "files.read: [/none/a]\n  # --read: [/none] (owner)\n");
    assert_contains(text_string(&shown), "cove.yaml:3: [/none/a] (repository, which narrows it)");
    spec_origins_json(&outcome.origins, &outcome.spec, &json);
    assert_contains(text_string(&json), "\"effect\":\"ceiling\"");
    outcome_free(&outcome);
}

/* Files that cannot be believed */

static uid_t me; /* who the files have to belong to */

static struct spec_sources sources_of(const char *admin, const char *owner)
{
    static char *variables[] = { NULL };

    return (struct spec_sources){ admin, me, owner, "/home/me", "/work/dir", me, variables };
}

/* Reads with one file as the administrator's, as the owner's and as --policy; `reason` NULL: fine. */
static void expect_files(const char *path, const char *reason)
{
    static const struct flag flag = { .name = "policy", .argument = "FILE", .kind = FLAG_POLICY };
    struct flag_use use = { &flag, NULL, path };
    const struct spec_request plain = SPEC_REQUEST_NONE, policy = { .items = &use, .len = 1 };
    const struct spec_sources sources[] = { sources_of(path, NULL), sources_of(NULL, path),
                                            sources_of(NULL, NULL) };

    for (size_t i = 0; i < ARRAY_LEN(sources); i++) {
        autoorigins struct spec_origins origins = SPEC_ORIGINS_NONE;
        autospec struct spec spec = SPEC_NONE;
        struct error err = { 0 };
        int result = spec_read(i == 2 ? &policy : &plain, &sources[i], &spec, &origins, &err);

        if (!reason && result < 0)
            fail_msg("%s", err.text);
        if (!reason)
            continue;
        if (result == 0)
            fail_msg("%s was believed (%zu)", path, i);
        assert_contains(err.text, reason);
        assert_contains(err.text, strrchr(path, '/') + 1);
    }
}

static void files_that_others_can_write_are_refused(void **state)
{
    const struct unit_scratch *scratch = *state;
    const char *path = unit_scratch_file(scratch, "p.yaml", "{}\n");
    static const mode_t bad[] = { 0620, 0602, 0666, 0777, 0622 }, good[] = { 0600, 0644, 0444, 0755 };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(chmod(path, bad[i]), 0);
        expect_files(path, "others can write it");
    }
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        assert_int_equal(chmod(path, good[i]), 0);
        expect_files(path, NULL);
    }
}

static void a_directory_that_others_can_write_is_refused(void **state)
{
    const struct unit_scratch *scratch = *state;

    unit_scratch_dir(scratch, "d", 0700);

    const char *path = unit_scratch_file(scratch, "d/p.yaml", "{}\n");

    assert_int_equal(fchmodat(scratch->dir, "d", 0770, 0), 0);
    expect_files(path, "others can write it");
    assert_int_equal(fchmodat(scratch->dir, "d", 0707, 0), 0);
    expect_files(path, "others can write it");
    assert_int_equal(fchmodat(scratch->dir, "d", 01777, 0), 0); /* sticky, like /tmp */
    expect_files(path, NULL);
    assert_int_equal(fchmodat(scratch->dir, "d", 0755, 0), 0);
    expect_files(path, NULL);
}

static void links_directories_and_pipes_are_refused(void **state)
{
    const struct unit_scratch *scratch = *state;

    unit_scratch_file(scratch, "real.yaml", "{}\n");
    assert_int_equal(symlinkat("real.yaml", scratch->dir, "link.yaml"), 0);
    expect_files(unit_scratch_path(scratch, "link.yaml"), "symbolic link");
    assert_int_equal(symlinkat("nowhere", scratch->dir, "dangling.yaml"), 0);
    expect_files(unit_scratch_path(scratch, "dangling.yaml"), "symbolic link");
    unit_scratch_dir(scratch, "dir.yaml", 0700);
    expect_files(unit_scratch_path(scratch, "dir.yaml"), "a directory");
    assert_int_equal(mkfifoat(scratch->dir, "pipe.yaml", 0600), 0);
    expect_files(unit_scratch_path(scratch, "pipe.yaml"), "regular file");
}

static void the_administrators_directory_may_not_be_a_link(void **state)
{
    const struct unit_scratch *scratch = *state;
    autoorigins struct spec_origins origins = SPEC_ORIGINS_NONE;
    autospec struct spec spec = SPEC_NONE;
    struct spec_request request = SPEC_REQUEST_NONE;
    struct error err = { 0 };

    unit_scratch_dir(scratch, "real", 0700);
    unit_scratch_file(scratch, "real/p.yaml", "{}\n");
    assert_int_equal(symlinkat("real", scratch->dir, "link"), 0);

    struct spec_sources admin = sources_of(unit_scratch_path(scratch, "link/p.yaml"), NULL);
    struct spec_sources owner = sources_of(NULL, unit_scratch_path(scratch, "link/p.yaml"));

    assert_int_equal(spec_read(&request, &admin, &spec, &origins, &err), -1);
    assert_int_equal(spec_read(&request, &owner, &spec, &origins, &err), 0);
}

static void files_of_somebody_else_are_refused(void **state)
{
    const struct unit_scratch *scratch = *state;
    const char *path = unit_scratch_file(scratch, "p.yaml", "{}\n");

    if (geteuid() != 0) { /* cannot give a file away, but be somebody else for the reader */
        me = geteuid() + 1;
        expect_files(path, "belongs to user");
        me = geteuid();
        return;
    }
    assert_int_equal(chown(path, 4321, 4321), 0);
    expect_files(path, "belongs to user 4321");
    assert_int_equal(chown(path, 0, 0), 0);
    assert_int_equal(chown(scratch->path, 4321, 4321), 0);
    expect_files(path, "belongs to user 4321");
    assert_int_equal(chown(scratch->path, 0, 0), 0);
}

static void an_empty_file_and_one_that_cannot_be_read_whole_are_refused(void **state)
{
    const struct unit_scratch *scratch = *state;
    autotext struct text large = TEXT_NONE;

    expect_files(unit_scratch_file(scratch, "p.yaml", ""), "is empty");
    expect_files(unit_scratch_file(scratch, "p.yaml", "\n\n# nothing\n"), "is empty");
    expect_files(unit_scratch_file(scratch, "p.yaml", "files: {read: [/x\n"), "no YAML");
    expect_files(unit_scratch_file(scratch, "p.yaml", "\xef\xbb\xbf{}\n"), "byte order mark");
    expect_files(unit_scratch_file(scratch, "p.yaml", "tools: false\r\nroot: true\r\n"), NULL);
    while (large.len <= 1 << 20)
        text_add(&large, "# a comment of some length, many times over\n");
    expect_files(unit_scratch_file(scratch, "p.yaml", text_string(&large)), "1 MB");
}

static void a_file_that_is_not_there_restricts_nothing_unless_it_was_named(void **state)
{
    const struct unit_scratch *scratch = *state;
    autoorigins struct spec_origins origins = SPEC_ORIGINS_NONE;
    autospec struct spec spec = SPEC_NONE;
    struct spec_request request = SPEC_REQUEST_NONE;
    struct error err = { 0 };
    const char *gone = unit_scratch_path(scratch, "no/such.yaml");
    struct spec_sources sources = sources_of(gone, gone);

    assert_int_equal(spec_read(&request, &sources, &spec, &origins, &err), 0);
    assert_int_equal(err.kind, ERROR_NONE);
    assert_contains(failure(scratch, &(struct layers){ .flags = { "--policy", gone } }, ERROR_MISSING), gone);
    assert_contains(failure(scratch, &(struct layers){ .flags = { "--spec", gone } }, ERROR_MISSING), gone);
}

static void a_repository_file_that_is_no_plain_file_stops_the_start(void **state)
{
    const struct unit_scratch *scratch = *state;
    struct outcome outcome;

    layers_read(scratch, &(struct layers){ 0 }, &outcome);
    unit_scratch_file(scratch, "other", "policy: {}\n");
    assert_int_equal(symlinkat("other", scratch->dir, "cove.yaml"), 0);
    assert_int_equal(
        spec_narrow_by_repository(&outcome.spec, scratch->dir, "/w", &outcome.origins, outcome.err), -1);
    assert_contains(outcome.err->text, "/w/cove.yaml: is a symbolic link");
    unlinkat(scratch->dir, "cove.yaml", 0);
    assert_int_equal(mkfifoat(scratch->dir, "cove.yaml", 0600), 0);
    assert_int_equal(
        spec_narrow_by_repository(&outcome.spec, scratch->dir, "/w", &outcome.origins, outcome.err), -1);
    unlinkat(scratch->dir, "cove.yaml", 0);
    unit_scratch_dir(scratch, "cove.yaml", 0700);
    assert_int_equal(
        spec_narrow_by_repository(&outcome.spec, scratch->dir, "/w", &outcome.origins, outcome.err), -1);
    unlinkat(scratch->dir, "cove.yaml", AT_REMOVEDIR);
    outcome_free(&outcome);
}

static void the_usual_places_follow_the_environment(void **state)
{
    static char config[] = "XDG_CONFIG_HOME=/cfg", relative[] = "XDG_CONFIG_HOME=cfg";
    char *with[] = { config, NULL }, *without[] = { relative, NULL }, *file = NULL;
    struct spec_sources sources;

    (void)state;
    spec_sources_usual(&sources, "/h", "/c", 5, with, &file);
    assert_string_equal(sources.owner_file, "/cfg/cove/policy.yaml");
    assert_string_equal(sources.admin_file, "/etc/cove/policy.yaml");
    assert_int_equal(sources.admin_uid, 0);
    free(file);
    spec_sources_usual(&sources, "/h", "/c", 5, without, &file);
    assert_string_equal(sources.owner_file, "/h/.config/cove/policy.yaml");
    free(file);
}

#define ON_SCRATCH(test) cmocka_unit_test_setup_teardown(test, unit_scratch_setup, unit_scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_SCRATCH(nothing_said_gives_the_defaults),
        ON_SCRATCH(a_mistake_is_reported_with_file_line_key_value_and_what_is_allowed),
        ON_SCRATCH(mistakes_of_a_repository_are_reported_too),
        ON_SCRATCH(a_list_of_a_repository_is_bounded),
        ON_SCRATCH(wishes_are_noted_and_grant_nothing),
        ON_SCRATCH(a_flag_that_makes_no_sense_is_named_with_its_value),
        ON_SCRATCH(flags_win_over_files_and_lists_add_up),
        ON_SCRATCH(an_env_file_is_read_line_by_line),
        ON_SCRATCH(a_volume_may_have_any_character),
        ON_SCRATCH(services_have_names_and_bounds),
        ON_SCRATCH(a_repository_cannot_take_root_from_one_who_asked_for_it_in_silence),
        ON_SCRATCH(a_flag_that_asks_for_something_where_nothing_is_reached_is_a_mistake),
        ON_SCRATCH(who_said_what_is_on_record),
        ON_SCRATCH(files_that_others_can_write_are_refused),
        ON_SCRATCH(a_directory_that_others_can_write_is_refused),
        ON_SCRATCH(links_directories_and_pipes_are_refused),
        ON_SCRATCH(the_administrators_directory_may_not_be_a_link),
        ON_SCRATCH(files_of_somebody_else_are_refused),
        ON_SCRATCH(an_empty_file_and_one_that_cannot_be_read_whole_are_refused),
        ON_SCRATCH(a_file_that_is_not_there_restricts_nothing_unless_it_was_named),
        ON_SCRATCH(a_repository_file_that_is_no_plain_file_stops_the_start),
        cmocka_unit_test(the_usual_places_follow_the_environment),
    };

    me = geteuid();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
