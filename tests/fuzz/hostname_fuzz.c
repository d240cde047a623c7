/* A host, a pattern, an address, a path: what is taken has one form, which is taken again as itself, and rules
 * that are made of it give one verdict. */

#include "base/own.h"
#include "base/text.h"
#include "gateway/rules.h"
#include "spec/rule_path.h"
#include "tests/fuzz/fuzz.h"

static void try_address(const char *bytes, size_t len)
{
    struct address address, again;
    char shown[ADDRESS_SIZE];

    if (address_read(bytes, len, &address) == ADDRESS_NOT) {
        check(address.len == 0);
        return;
    }
    address_show(&address, shown);
    check((address.len == 0) == (shown[0] == '\0'));
    if (address.len)
        check(address_read(shown, strlen(shown), &again) == ADDRESS_PLAIN && address_same(&address, &again));
}

static void try_rule(const char *pattern, const char *bytes, size_t len)
{
    const struct question question = {
        .host = bytes, .host_len = len, .port = 443, .method = "GET", .path = "/"
    };
    struct rule rule = { .host = text_copy(pattern), .port = 443 };
    struct rule_list list = { &rule, 1, 1 };
    struct rules rules;
    struct verdict verdict;

    rules_init(&rules, NETWORK_RULES, &list);
    rules_verdict(&rules, &question, &verdict);
    check(verdict.why[0] != '\0');
    for (const char *at = verdict.why; *at; at++)
        check((unsigned char)*at >= 0x20 && *at != 0x7f);
    check(!verdict.allowed || hostname_matches(pattern, &verdict.host));
    check(verdict.allowed || verdict.pinned.len == 0);
    rules_free(&rules);
    rule_free(&rule);
}

static void try_path(const char *raw)
{
    autotext struct text plain = TEXT_NONE, again = TEXT_NONE;

    if (!path_plain(raw, &plain))
        return;
    check(path_plain(text_string(&plain), &again) && strcmp(text_string(&plain), text_string(&again)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *bytes = (const char *)data;
    autofree char *text = text_format("%.*s", (int)size, size ? bytes : "");
    char pattern[HOSTNAME_SIZE + 2], same[HOSTNAME_SIZE + 2];
    struct hostname host, again;

    try_address(bytes, size);
    try_path(text);
    try_rule("*", bytes, size);
    try_rule("example.com", bytes, size);
    if (!hostname_read(bytes, size, &host)) {
        check(!hostname_read(host.text, strlen(host.text), &again));
        check(strcmp(host.text, again.text) == 0 && address_same(&host.address, &again.address));
        check(hostname_is_address(&host) != hostname_matches("*", &host));
    } else {
        check(host.text[0] == '\0');
    }
    if (!hostname_read_pattern(bytes, size, pattern)) {
        check(!hostname_read_pattern(pattern, strlen(pattern), same) && strcmp(pattern, same) == 0);
        check(hostname_pattern_within(pattern, pattern));
        try_rule(pattern, bytes, size);
    }
    return 0;
}
