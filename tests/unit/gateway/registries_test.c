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
    autostrings struct strings registries = STRINGS_NONE, own_notes = STRINGS_NONE, told = STRINGS_NONE;
    struct rule_list list = RULE_LIST_NONE;
    struct text shown = TEXT_NONE;

    strings_add(&registries, registry);
    registries_read(&registries, source, &places, &list, &told, notes ? notes : &own_notes);
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

static char *told(const struct unit_scratch *scratch, const char *registry, char **variables)
{
    autofree char *home = text_format("%s/home", scratch->path);
    const struct registry_places places = { scratch->path, home, NULL, getuid(), variables };
    autostrings struct strings registries = STRINGS_NONE, said = STRINGS_NONE, notes = STRINGS_NONE;
    struct rule_list list = RULE_LIST_NONE;
    struct text shown = TEXT_NONE;

    strings_add(&registries, registry);
    registries_read(&registries, REGISTRIES_OF_USER, &places, &list, &said, &notes);
    for (size_t i = 0; i < said.len; i++)
        text_addf(&shown, "%s%s", i ? "; " : "", said.items[i]);
    rule_list_free(&list);
    return text_steal(&shown);
}

static void tools_inside_are_told_what_is_configured_and_no_secret(void **state)
{
    static char pip[] = "PIP_INDEX_URL=https://u:hidden@pip.example/simple?token=hidden";
    static char *variables[] = { pip, NULL };
    static const struct {
        const char *file, *content, *registry, *told;
    } cases[] = {
        { DEFINITIONS, "'registry', {\n    default: 'https://npm.example/',\n", "npm", "" },
        { "etc/npmrc", "//m.test/:_authToken=hidden\nregistry=https://a:hidden@m.test:4873/npm/\n", "npm",
          "npm_config_registry=https://m.test:4873/npm/" },
        { "home/.npmrc", "@a:registry=https://own.test/\nregistry=http://own.test:81/\n", "npm",
          "npm_config_registry=http://own.test:81/" },
        { "etc/pip.conf",
          "[global]\nindex-url=http://p.test/s\nextra-index-url=https://x.test/ https://y.test\n", "pip",
          "PIP_TRUSTED_HOST=p.test:80; PIP_INDEX_URL=http://p.test/s; UV_DEFAULT_INDEX=http://p.test/s; "
          "PIP_EXTRA_INDEX_URL=https://x.test/ https://y.test/" },
        { "usr/local/go/go.env", "GOPROXY=https://g.example,direct\nGOSUMDB=sum.go.example\n", "go", "" },
        { "home/.config/go/env", "GOPROXY=https://u:hidden@g.test/x|direct\nGOSUMDB=off\n", "go",
          "GOPROXY=https://g.test/x,direct; GOSUMDB=off" },
        { "home/.config/go/env",
          "GOPROXY=https://u:p'hidden@g.test/x|off\nGOSUMDB=sum.go.test+1+Ab/c= a'hidden\n", "go",
          "GOPROXY=off; GOSUMDB=sum.go.test+1+Ab/c=" },
        { "home/.npmrc", "registry=http://localhost:4873/\n", "npm", "" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        put(*state, cases[i].file, cases[i].content);
        autofree char *said = told(*state, cases[i].registry, NULL);

        assert_string_equal(said, cases[i].told);
    }
    autofree char *said = told(*state, "pip", variables);

    assert_contains(said, "PIP_INDEX_URL=https://pip.example/simple;");
    assert_null(strstr(said, "hidden"));
}

static void hints_name_the_registry(void **state)
{
    const struct unit_scratch *scratch = *state;
    autofree char *home = text_format("%s/home", scratch->path);
    const struct registry_places places = { scratch->path, home, NULL, getuid(), NULL };
    struct rule_list hints = RULE_LIST_NONE;

    put(scratch, "etc/npmrc", "registry=https://m.test:4873/\n");
    put(scratch, "etc/pip.conf", "[global]\nindex-url=https://p.test/s\n");
    put(scratch, "usr/bin/cargo", "sparse+https://index.cargo.example/");
    registries_hints(&places, &hints);
    assert_int_equal(hints.len, 2);
    assert_string_equal(hints.items[0].place, "npm");
    assert_string_equal(hints.items[1].place, "pip");
    assert_string_equal(hints.items[1].host, "p.test");
    rule_list_free(&hints);
}

/* Who names the usual index in a file has what belongs to it. */
static void what_belongs_to_a_named_index_comes_along(void **state)
{
    put(*state, "usr/lib/python3/dist-packages/pip/_internal/models/index.py",
        "\nPyPI = PackageIndex(\"https://pip.example/\", file_storage_domain=\"files.pip.example\")\n");
    put(*state, "etc/pip.conf", "[global]\nindex-url = https://pip.example/simple\n");
    expect(*state, "pip", "pip.example:443 files.pip.example:443");
    put(*state, "usr/bin/cargo", "sparse+https://index.cargo.example/");
    put(*state, "home/.cargo/config.toml",
        "[source.crates-io]\nreplace-with = \"m\"\n[source.m]\nregistry = "
        "\"sparse+https://index.cargo.example/\"\n");
    expect(*state, "cargo", "index.cargo.example:443 *.cargo.example:443");
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

/* "HOST INDEX" of each rule. */
static void expect_index(const struct unit_scratch *scratch, const char *registry, const char *want)
{
    autofree char *home = text_format("%s/home", scratch->path);
    const struct registry_places places = { scratch->path, home, NULL, getuid(), NULL };
    autostrings struct strings registries = STRINGS_NONE, said = STRINGS_NONE, notes = STRINGS_NONE;
    autotext struct text shown = TEXT_NONE;
    struct rule_list list = RULE_LIST_NONE;

    strings_add(&registries, registry);
    registries_read(&registries, REGISTRIES_OF_USER, &places, &list, &said, &notes);
    for (size_t i = 0; i < list.len; i++)
        text_addf(&shown, "%s%s %s", i ? ", " : "", list.items[i].host,
                  list.items[i].index ? list.items[i].index : "-");
    assert_string_equal(text_string(&shown), want);
    rule_list_free(&list);
}

static void hashes_are_asked_for_by_tls_at_the_registry_itself(void **state)
{
    put(*state, "etc/npmrc", "registry=https://u:p@npm.test/mirror\n@a:registry=http://plain.test/\n");
    put(*state, "etc/pip.conf",
        "[global]\nindex-url = https://py.test:8443/a/simple/\nextra-index-url = https://q.test/?x\n");
    put(*state, "usr/local/go/go.env", "GOPROXY=https://go.test\nGOSUMDB=sum.test\n");
    put(*state, "home/.cargo/config.toml",
        "[registries.a]\nindex = \"sparse+https://sparse.test/i/\"\n[registries.b]\nindex = "
        "\"https://git.test/i\"\n");
    put(*state, "usr/bin/cargo", "x sparse+https://index.crates.test/ x");
    expect_index(*state, "npm", "npm.test https://npm.test:443/mirror/, plain.test -");
    expect_index(*state, "pip", "py.test https://py.test:8443/a/simple/, q.test -");
    expect_index(*state, "go", "go.test -, sum.test -");
    expect_index(
        *state, "cargo",
        "sparse.test https://sparse.test:443/i/, git.test -, index.crates.test https://index.crates.test:443/, "
        "*.crates.test https://index.crates.test:443/");
}

#define ON_SCRATCH(test) cmocka_unit_test_setup_teardown(test, unit_scratch_setup, unit_scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_SCRATCH(nothing_is_known_of_a_tool_that_is_not_there),
        ON_SCRATCH(npm_asks_its_files_in_their_order),
        ON_SCRATCH(variables_of_the_user_come_first),
        ON_SCRATCH(pip_has_an_index_and_more_of_them),
        ON_SCRATCH(tools_inside_are_told_what_is_configured_and_no_secret),
        ON_SCRATCH(hints_name_the_registry),
        ON_SCRATCH(what_belongs_to_a_named_index_comes_along),
        ON_SCRATCH(cargo_may_have_its_registry_replaced),
        ON_SCRATCH(go_has_proxies_and_a_sum_database),
        ON_SCRATCH(apt_has_two_kinds_of_files),
        ON_SCRATCH(odd_addresses_are_noted_and_not_shown),
        ON_SCRATCH(nothing_of_the_workspace_is_read),
        ON_SCRATCH(what_others_can_write_is_not_read),
        ON_SCRATCH(hashes_are_asked_for_by_tls_at_the_registry_itself),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
