/* Files of package tools, and the tools themselves, with any bytes in them: each rule that comes of it is one
 * that could stand in a policy file, and no note carries a byte that a terminal obeys. */

#include "base/hostname.h"
#include "base/text.h"
#include "gateway/registries.h"
#include "tests/fuzz/fuzz_scratch.h"

/* One file of each kind of reader. */
static const char *const files[] = {
    "usr/bin/cargo",
    "usr/lib/python3/dist-packages/pip/_internal/models/index.py",
    "usr/share/nodejs/npm/lib/utils/config/definitions.js",
    "etc/npmrc",
    "etc/pip.conf",
    "home/.cargo/config.toml",
    "usr/local/go/go.env",
    "etc/apt/sources.list",
    "etc/apt/sources.list.d/a.sources",
};

static void put(int top, const char *path, const uint8_t *data, size_t size)
{
    char part[128];
    int fd;

    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        (void)mkdirat(top, part, 0700);
    }
    fd = openat(top, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    check(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    close(fd);
}

static void check_rule(const struct rule *rule)
{
    char form[HOSTNAME_SIZE + 2];

    check(!hostname_read_pattern(rule->host, strlen(rule->host), form) && strcmp(form, rule->host) == 0);
    check(rule->port != 0 && rule->action == RULE_ALLOW && !hostname_pattern_is_broad(rule->host));
    check(!rule->address || strcmp(rule->address, "127.0.0.1") == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int top = fuzz_scratch_top();
    char root[96], home[128];
    const struct registry_places places = { root, home, NULL, getuid(), NULL };
    struct strings registries = STRINGS_NONE, notes = STRINGS_NONE, variables = STRINGS_NONE;
    struct rule_list list = RULE_LIST_NONE;
    size_t which = size ? data[0] % (sizeof files / sizeof *files) : 0;

    snprintf(root, sizeof root, "%s/top", fuzz_dir);
    snprintf(home, sizeof home, "%s/top/home", fuzz_dir);
    if (size)
        put(top, files[which], data + 1, size - 1);
    for (size_t i = 0; i < REGISTRY_COUNT; i++)
        strings_add(&registries, registry_names[i]);
    registries_read(&registries, REGISTRIES_OF_USER, &places, &list, &variables, &notes);
    for (size_t i = 0; i < list.len; i++)
        check_rule(&list.items[i]);
    for (size_t i = 0; i < notes.len; i++)
        for (const char *at = notes.items[i]; *at; at++)
            check((unsigned char)*at >= 0x20 && *at != 0x7f);
    for (size_t i = 0; i < variables.len; i++)
        check(strchr(variables.items[i], '=') && !strchr(variables.items[i], '\n'));
    strings_free(&variables);
    rule_list_free(&list);
    strings_free(&notes);
    strings_free(&registries);
    fuzz_scratch_done(top);
    return 0;
}
