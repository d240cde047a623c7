/* A registry's kind, a path, and what the registry says: whatever they are, what is asked can stand in a
 * request, and a hash is one or none. */
#include "gateway/package.h"

#include "base/own.h"
#include "tests/fuzz/fuzz.h"

static char index_url[] = "https://registry.example:443/simple/";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum registry kinds[] = { REGISTRY_NPM, REGISTRY_PIP, REGISTRY_CARGO };
    const char *text = (const char *)data + 1, *end = size ? memchr(text, '\n', size - 1) : NULL;
    autopackage struct package package = PACKAGE_NONE;
    struct checksum sum = CHECKSUM_NONE;

    if (!end)
        return 0;
    const struct rule rule = { .registry = kinds[data[0] % 3], .index = index_url };
    autofree char *path = text_format("%.*s", (int)(end - text), text);

    if (!package_recognise(&rule, "registry.example", 443, path, &package))
        return 0;
    for (const char *at = text_string(&package.asked); *at; at++)
        check(*at > ' ' && *at < 0x7f && !strchr("?#\\\"", *at));
    check(text_starts(text_string(&package.asked), "/simple/") && !strstr(text_string(&package.asked), "/../"));

    size_t len = size - (size_t)(end + 1 - (const char *)data);
    autofree char *answer = memory_zero(len + 1); /* so that reading behind it is seen */

    memcpy(answer, end + 1, len);
    if (package_read(&package, answer, len, &sum))
        check(checksum_is(sum.text, NULL));
    return 0;
}
