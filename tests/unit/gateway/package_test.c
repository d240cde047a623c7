#include "gateway/package.h"

#include "base/array.h"
#include "tests/support/unit.h"

#include <string.h>

static char npm_index[] = "https://npm.example:443/mirror/", pip_index[] = "https://py.example:443/simple/",
            cargo_index[] = "https://index.example:443/";

static const struct rule rules[REGISTRY_COUNT] = {
    [REGISTRY_NPM] = { .registry = REGISTRY_NPM, .index = npm_index },
    [REGISTRY_PIP] = { .registry = REGISTRY_PIP, .index = pip_index },
    [REGISTRY_CARGO] = { .registry = REGISTRY_CARGO, .index = cargo_index },
    [REGISTRY_GO] = { .registry = REGISTRY_GO },
};

static void a_file_is_recognised_by_its_path_alone(void **state)
{
    static const struct {
        enum registry registry;
        const char *path, *asked; /* NULL: it is none */
    } rows[] = {
        { REGISTRY_NPM, "/mirror/qs/-/qs-6.11.0.tgz", "/mirror/qs/6.11.0" },
        { REGISTRY_NPM, "/mirror/@a/b-c/-/b-c-1.0.0-rc.1.tgz", "/mirror/@a/b-c/1.0.0-rc.1" },
        { REGISTRY_NPM, "/qs/-/qs-6.11.0.tgz", NULL },
        { REGISTRY_NPM, "/mirror/qs/-/other-6.11.0.tgz", NULL },
        { REGISTRY_NPM, "/mirror/qs/-/qs-.tgz", NULL },
        { REGISTRY_NPM, "/mirror/qs/-/qs-1/x.tgz", NULL },
        { REGISTRY_NPM, "/mirror/a/b/-/b-1.tgz", NULL },
        { REGISTRY_NPM, "/mirror/@a/b/c/-/c-1.tgz", NULL },
        { REGISTRY_NPM, "/mirror/-/x-1.tgz", NULL },
        { REGISTRY_NPM, "/mirror/qs/-/qs-1.0.tgz?x", NULL },
        { REGISTRY_NPM, "/mirror/qs/-/qs-1.0 .tgz", NULL },
        { REGISTRY_NPM, "/mirror/qs/../x/-/x-1.0.tgz", NULL },
        { REGISTRY_NPM, "/mirror/qs", NULL },
        { REGISTRY_PIP, "/packages/ab/Foo_Bar.baz-1.0-py3-none-any.whl", "/simple/foo-bar-baz/" },
        { REGISTRY_PIP, "/x/foo-bar-2.0.tar.gz", "/simple/foo-bar/" },
        { REGISTRY_PIP, "/x/foo-2-3.1.zip", "/simple/foo-2/" },
        { REGISTRY_PIP, "/x/foo.tar.gz", NULL },
        { REGISTRY_PIP, "/x/foo-1.0.exe", NULL },
        { REGISTRY_PIP, "/x/%2e%2e-1.0.zip", NULL },
        { REGISTRY_PIP, "/simple/foo/", NULL },
        { REGISTRY_CARGO, "/crates/serde/1.0.1/download", "/se/rd/serde" },
        { REGISTRY_CARGO, "/crates/Serde/Serde-1.0.1.crate", "/se/rd/serde" },
        { REGISTRY_CARGO, "/crates/a/1.0.1/download", "/1/a" },
        { REGISTRY_CARGO, "/crates/ab/1.0.1/download", "/2/ab" },
        { REGISTRY_CARGO, "/crates/abc/1.0.1/download", "/3/a/abc" },
        { REGISTRY_CARGO, "/crates/serde/other-1.0.crate", NULL },
        { REGISTRY_CARGO, "/crates/%73erde/1.0.1/download", NULL },
        { REGISTRY_CARGO, "/download", NULL },
        { REGISTRY_CARGO, "/a/download", NULL },
        { REGISTRY_CARGO, "/.crate", NULL },
        { REGISTRY_CARGO, "/config.json", NULL },
        { REGISTRY_GO, "/x/@v/v1.zip", NULL },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        autopackage struct package package = PACKAGE_NONE;
        bool is = package_recognise(&rules[rows[i].registry], "files.example", 443, rows[i].path, &package);

        if (is != (rows[i].asked != NULL) || (is && strcmp(text_string(&package.asked), rows[i].asked) != 0))
            fail_msg("%s: %s", rows[i].path, is ? text_string(&package.asked) : "is none");
    }
}

#define ZEROS "00000000000000000000000000000000"
#define SHA256 ZEROS "0000000000000000000000000000000a"
#define SHA512 "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=="
#define QS(version, file, sums)                                                                                \
    "{\"name\":\"qs\",\"version\":\"" version "\",\"dist\":{\"tarball\":\"https://up.example/qs/-/" file       \
    "\",\"integrity\":\"" sums "\"}}"
#define LINK(url) "<a href=\"" url "#sha256=" SHA256 "\">x</a>"
#define CRATE(name, version, sum) "{\"name\":\"" name "\",\"vers\":\"" version "\",\"cksum\":\"" sum "\"}\n"

static void only_what_the_registry_says_of_this_very_file_is_its_hash(void **state)
{
    static const char qs[] = "/mirror/qs/-/qs-1.0.tgz", wheel[] = "/packages/foo-1.0-py3-none-any.whl",
                      crate[] = "/crates/serde/1.0.1/download";
    static const struct {
        enum registry registry;
        const char *path, *host, *answer, *sum;
    } rows[] = {
        { REGISTRY_NPM, qs, "npm.example", QS("1.0", "qs-1.0.tgz", "sha512-" SHA512), "sha512-" ZEROS },
        { REGISTRY_NPM, qs, "npm.example", QS("1.0", "qs-1.0.tgz", "sha1-xx sha512-" SHA512 "?opt"),
          "sha512-" ZEROS },
        { REGISTRY_NPM, qs, "npm.example", QS("1.1", "qs-1.0.tgz", "sha512-" SHA512), NULL },
        { REGISTRY_NPM, qs, "npm.example", QS("1.0", "qs-1.1.tgz", "sha512-" SHA512), NULL },
        { REGISTRY_NPM, qs, "npm.example", QS("1.0", "qs-1.0.tgz", "sha1-" SHA512), NULL },
        { REGISTRY_NPM, qs, "npm.example", QS("1.0", "qs-1.0.tgz", "sha512-AAAA"), NULL },
        { REGISTRY_NPM, qs, "npm.example", "[]", NULL },
        { REGISTRY_NPM, qs, "npm.example", "", NULL },
        { REGISTRY_NPM, qs, "npm.example", "{\"name\":1,\"dist\":[]}", NULL },
        { REGISTRY_PIP, wheel, "files.example", LINK("https://files.example/packages/foo-1.0-py3-none-any.whl"),
          "sha256-" ZEROS },
        { REGISTRY_PIP, wheel, "py.example", LINK("../../packages/foo-1.0-py3-none-any.whl"), "sha256-" ZEROS },
        { REGISTRY_PIP, wheel, "py.example", LINK("/packages/foo-1.0-py3-none-any.whl"), "sha256-" ZEROS },
        { REGISTRY_PIP, wheel, "py.example", LINK("x") LINK("../../packages/foo-1.0-py3-none-any.whl"),
          "sha256-" ZEROS },
        { REGISTRY_PIP, wheel, "files.example", LINK("../../packages/foo-1.0-py3-none-any.whl"), NULL },
        { REGISTRY_PIP, wheel, "files.example", LINK("https://other.example/packages/foo-1.0-py3-none-any.whl"),
          NULL },
        { REGISTRY_PIP, wheel, "files.example", LINK("http://files.example/packages/foo-1.0-py3-none-any.whl"),
          NULL },
        { REGISTRY_PIP, wheel, "files.example", LINK("https://files.example/packages/foo-1.1-py3-none-any.whl"),
          NULL },
        { REGISTRY_PIP, wheel, "files.example",
          "<a href=\"https://files.example/packages/foo-1.0-py3-none-any.whl#md5=0\">", NULL },
        { REGISTRY_PIP, wheel, "files.example",
          "<a href=\"https://files.example/packages/foo-1.0-py3-none-any.whl#sha256=0a\">", NULL },
        { REGISTRY_PIP, wheel, "files.example", "<a href=", NULL },
        { REGISTRY_PIP, wheel, "files.example", "<a href=\"", NULL },
        { REGISTRY_CARGO, crate, "static.example", CRATE("serde", "1.0.0", "x") CRATE("serde", "1.0.1", SHA256),
          "sha256-" ZEROS },
        { REGISTRY_CARGO, crate, "static.example", CRATE("serde", "1.0.0", SHA256), NULL },
        { REGISTRY_CARGO, crate, "static.example", CRATE("other", "1.0.1", SHA256), NULL },
        { REGISTRY_CARGO, crate, "static.example", CRATE("serde", "1.0.1", "0a"), NULL },
        { REGISTRY_CARGO, crate, "static.example", "\"1.0.1\"", NULL },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        autopackage struct package package = PACKAGE_NONE;
        struct checksum sum = CHECKSUM_NONE;

        assert_true(package_recognise(&rules[rows[i].registry], rows[i].host, 443, rows[i].path, &package));
        bool is = package_read(&package, rows[i].answer, strlen(rows[i].answer), &sum);

        if (is != (rows[i].sum != NULL) || (is && strncmp(sum.text, rows[i].sum, strlen(rows[i].sum)) != 0))
            fail_msg("row %zu: %s: %s", i, rows[i].answer, is ? sum.text : "no hash");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_recognised_by_its_path_alone),
        cmocka_unit_test(only_what_the_registry_says_of_this_very_file_is_its_hash),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
