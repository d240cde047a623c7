/* Each tool's configuration as it is found on machines, below a directory that stands for the root. */

#include "gateway/registries.h"

#include "base/own.h"
#include "base/text.h"
#include "tests/support/unit.h"
#include "tests/support/unit_scratch.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void put(const struct unit_scratch *scratch, const char *path, const char *content)
{
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        autofree char *directory = text_format("%.*s", (int)(slash - path), path);

        (void)mkdirat(scratch->dir, directory, 0700);
    }
    unit_scratch_file(scratch, path, content);
}

static char *found(const struct unit_scratch *scratch, const char *registry, enum registry_source source,
                   char **variables, struct strings *notes)
{
    autofree char *home = text_format("%s/home", scratch->path),
                  *work = text_format("%s/home/work", scratch->path);
    const struct registry_places places = { scratch->path, home, work, getuid(), variables };
    autostrings struct strings registries = STRINGS_NONE, own_notes = STRINGS_NONE;
    struct rule_list list = RULE_LIST_NONE;
    struct text shown = TEXT_NONE;

    strings_add(&registries, registry);
    registries_read(&registries, source, &places, &list, notes ? notes : &own_notes);
    for (size_t i = 0; i < list.len; i++) {
        const struct rule *rule = &list.items[i];

        text_addf(&shown, "%s%s:%u", i ? " " : "", rule->host, rule->port);
        if (rule->address)
            text_addf(&shown, " at %s", rule->address);
        assert_contains(list.items[i].place, registry);
    }
    rule_list_free(&list);
    return text_steal(&shown);
}

static void expect(const struct unit_scratch *scratch, const char *registry, const char *want)
{
    autofree char *hosts = found(scratch, registry, REGISTRIES_OF_USER, NULL, NULL);

    assert_string_equal(hosts, want);
}

static void nothing_is_known_of_a_tool_that_is_not_there(void **state)
{
    for (size_t i = 0; i < REGISTRY_COUNT; i++) {
        autostrings struct strings notes = STRINGS_NONE;
        autofree char *hosts = found(*state, registry_names[i], REGISTRIES_OF_USER, NULL, &notes);

        assert_string_equal(hosts, "");
        assert_int_equal(notes.len, 1);
        assert_contains(notes.items[0], "no host is known");
        assert_contains(notes.items[0], registry_names[i]);
    }
}

#define DEFINITIONS "usr/lib/node_modules/npm/node_modules/@npmcli/config/lib/definitions/definitions.js"

static void npm_asks_its_files_in_their_order(void **state)
{
    put(*state, DEFINITIONS,
        "  registry: new Definition('registry', {\n    default: 'https://npm.example/',\n");
    expect(*state, "npm", "npm.example:443");
    put(*state, "etc/npmrc", "; a comment\nregistry = http://mirror.corp.test:4873/\nfund=false\n");
    expect(*state, "npm", "mirror.corp.test:4873");
    put(*state, "home/.npmrc",
        "@team:registry=https://team.example/npm/\n//team.example/:_authToken=secret\nregistry=https://"
        "own.example\n");
    expect(*state, "npm", "own.example:443 team.example:443");

    autofree char *system = found(*state, "npm", REGISTRIES_OF_SYSTEM, NULL, NULL);

    assert_string_equal(system, "mirror.corp.test:4873");
}

static void variables_of_the_user_come_first(void **state)
{
    static char npm[] = "npm_config_registry=https://variable.example/",
                pip[] = "PIP_INDEX_URL=https://u:p@pip.example/simple";
    char *variables[] = { npm, pip, NULL };
    autofree char *first = found(*state, "npm", REGISTRIES_OF_USER, variables, NULL);
    autofree char *second = found(*state, "pip", REGISTRIES_OF_USER, variables, NULL);
    autofree char *system = found(*state, "npm", REGISTRIES_OF_SYSTEM, variables, NULL);

    assert_string_equal(first, "variable.example:443");
    assert_string_equal(second, "pip.example:443");
    assert_string_equal(system, "");
}

static void pip_has_an_index_and_more_of_them(void **state)
{
    put(*state, "usr/lib/python3/dist-packages/pip/_internal/models/index.py",
        "x = 1\n\nPyPI = PackageIndex(\"https://pip.example/\", file_storage_domain=\"files.pip.example\")\n"
        "TestPyPI = PackageIndex(\n    \"https://test.pip.example/\", file_storage_domain=\"no.example\"\n)\n");
    expect(*state, "pip", "pip.example:443 files.pip.example:443");
    put(*state, "etc/pip.conf",
        "[global]\nindex-url = https://mirror.corp.test/simple\nextra-index-url =\n    https://one.test/\n"
        "    http://two.test:8080/\n[other]\nindex_url = https://not.test\n");
    expect(*state, "pip", "mirror.corp.test:443 one.test:443 two.test:8080");
}

static void cargo_may_have_its_registry_replaced(void **state)
{
    put(*state, "usr/bin/cargo",
        "\177ELF sparse+ and sparse+https://iints: sparse+https://index.cargo.example/https://other.example/");
    expect(*state, "cargo", "index.cargo.example:443 *.cargo.example:443");
    put(*state, "usr/bin/cargo", "sparse+https://10.1.2.3/ sparse+https://index.cargo.example:444/");
    expect(*state, "cargo", "10.1.2.3:443");
    put(*state, "usr/bin/cargo", "sparse+https://index.cargo.example/");
    put(*state, "home/.cargo/config.toml", "[registries.own]\nindex = \"sparse+https://own.example/index/\"\n");
    expect(*state, "cargo", "own.example:443 index.cargo.example:443 *.cargo.example:443");
    put(*state, "home/.cargo/config.toml",
        "[source.crates-io]\nreplace-with = \"m\" # here\n[source.m]\nregistry = "
        "\"sparse+http://mirror.corp.test/\"\n");
    expect(*state, "cargo", "mirror.corp.test:80");
}

static void go_has_proxies_and_a_sum_database(void **state)
{
    put(*state, "usr/local/go/go.env",
        "# text\nGOPROXY=https://proxy.go.example,direct\nGOSUMDB=sum.go.example\n");
    expect(*state, "go", "proxy.go.example:443 sum.go.example:443");
    put(*state, "home/.config/go/env", "GOPROXY=http://10.0.0.5:3000|https://b.test,off\nGOSUMDB=off\n");
    expect(*state, "go", "10.0.0.5:3000 b.test:443 sum.go.example:443");
}

static void apt_has_two_kinds_of_files(void **state)
{
    put(*state, "etc/apt/sources.list",
        "# deb http://no.test/ x main\ndeb [arch=amd64 signed-by=/x] http://one.test/debian bookworm main\n"
        "deb-src https://src.test/ x main\ndeb cdrom:[Debian]/ x main\ndeb file:///srv/x ./\n");
    put(*state, "etc/apt/sources.list.d/a.sources",
        "Types: deb\n# http://no.test\nURIs: https://two.test/debian\n http://three.test:81/\nSuites: x\n\n"
        "URIs: http://four.test/\n");
    expect(*state, "apt", "one.test:80 two.test:443 three.test:81 four.test:80");
}

static void odd_addresses_are_noted_and_not_shown(void **state)
{
    autostrings struct strings notes = STRINGS_NONE;

    put(*state, "home/.npmrc",
        "registry=https://me:hidden@127.1/\n@a:registry=http://nexus:8081/\n"
        "@b:registry=http://localhost:4873\n@c:registry=ftp://x.test\n");

    autofree char *hosts = found(*state, "npm", REGISTRIES_OF_USER, NULL, &notes);

    assert_string_equal(hosts, "localhost:4873 at 127.0.0.1");
    assert_int_equal(notes.len, 3);
    for (size_t i = 0; i < notes.len; i++)
        assert_null(strstr(notes.items[i], "hidden"));
    assert_contains(notes.items[1], "nexus");
}

/* P11: whatever the repository holds, and however it is linked to. */
static void nothing_of_the_workspace_is_read(void **state)
{
    const struct unit_scratch *scratch = *state;
    autofree char *target = text_format("%s/home/work/npmrc", scratch->path);
    autostrings struct strings notes = STRINGS_NONE;

    put(scratch, "home/work/npmrc", "registry=https://evil.test/\n");
    put(scratch, "home/work/.npmrc", "registry=https://evil.test/\n");
    assert_int_equal(symlinkat(target, scratch->dir, "home/.npmrc"), 0);

    autofree char *hosts = found(scratch, "npm", REGISTRIES_OF_USER, NULL, &notes);

    assert_string_equal(hosts, "");
    assert_contains(notes.items[0], "in the workspace");
}

static void what_others_can_write_is_not_read(void **state)
{
    const struct unit_scratch *scratch = *state;

    put(scratch, "etc/npmrc", "registry=https://evil.test/\n");
    assert_int_equal(fchmodat(scratch->dir, "etc/npmrc", 0666, 0), 0);
    expect(scratch, "npm", "");
    assert_int_equal(fchmodat(scratch->dir, "etc/npmrc", 0644, 0), 0);
    expect(scratch, "npm", "evil.test:443");
}

#define ON_SCRATCH(test) cmocka_unit_test_setup_teardown(test, unit_scratch_setup, unit_scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_SCRATCH(nothing_is_known_of_a_tool_that_is_not_there),
        ON_SCRATCH(npm_asks_its_files_in_their_order),
        ON_SCRATCH(variables_of_the_user_come_first),
        ON_SCRATCH(pip_has_an_index_and_more_of_them),
        ON_SCRATCH(cargo_may_have_its_registry_replaced),
        ON_SCRATCH(go_has_proxies_and_a_sum_database),
        ON_SCRATCH(apt_has_two_kinds_of_files),
        ON_SCRATCH(odd_addresses_are_noted_and_not_shown),
        ON_SCRATCH(nothing_of_the_workspace_is_read),
        ON_SCRATCH(what_others_can_write_is_not_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
