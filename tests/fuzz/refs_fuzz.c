/* Files of references, all bytes of a hostile program.  What is taken has a name that git allows and a
 * hash; the name that it gets at home is one too, and can be typed into a shell. */

#include "base/own.h"
#include "base/text.h"
#include "git/own.h"
#include "git/refs.h"
#include "tests/fuzz/fuzz.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void check_name(const char *name)
{
    autofree char *around = text_format("/%s/", name), *plain = ref_plain_name(name);

    check(text_starts(name, "refs/heads/") && ref_is_name(name) && strlen(name) <= REF_NAME_MAX);
    check(!strstr(around, "/../") && !strstr(around, "/./") && !strstr(around, "//") &&
          !strstr(around, ".lock/"));
    check(!strpbrk(name, " \t\r\n\\~^:?*[\x7f"));
    check(!strpbrk(plain, "$`'\"();&|<>!#{}"));
    for (const char *at = plain; *at; at++)
        check(*at > ' ' && *at < 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const size_t lengths[] = { 40, 64 };
    autofree char *text = text_format("%.*s", (int)size, (const char *)data);

    for (size_t i = 0; i < 2; i++) {
        autorefs struct refs refs = REFS_NONE;
        char hash[HASH_MAX + 1];

        if (ref_parse((const char *)data, size, lengths[i], hash))
            check_hash(hash, lengths[i]);
        refs_parse_packed((const char *)data, size, "refs/heads", lengths[i], &refs);
        for (size_t at = 0; at < refs.len; at++) {
            check_hash(refs.items[at].hash, lengths[i]);
            check_name(refs.items[at].name);
        }
    }
    (void)ref_is_name(text);
    (void)git_own_below(text);
    return 0;
}
