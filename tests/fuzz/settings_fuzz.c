/* Configuration of other people's tools in each form, and every word of it as a URL: a host that is taken is in
 * its one form. */

#include "base/text.h"
#include "gateway/settings.h"
#include "gateway/url.h"
#include "tests/fuzz/fuzz.h"

static void found(void *owner, const char *key, const char *value)
{
    size_t *words = owner;
    struct url url;
    struct hostname again;

    (*words)++;
    check(*value && !strpbrk(value, " \t\r\n\"',|[]{}"));
    check(!strpbrk(key, " \t\r\n\"'_ABCDEFGHIJKLMNOPQRSTUVWXYZ"));
    if (url_read(value, &url))
        return;
    check(!hostname_read(url.host.text, strlen(url.host.text), &again));
    check(strcmp(again.text, url.host.text) == 0 && url.port != 0 && url.path[0] == '/');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int form = SETTINGS_EQUALS; form <= SETTINGS_DEB; form++) {
        size_t words = 0;

        settings_read((const char *)data, size, (enum settings_form)form, found, &words);
        check(words <= size);
    }
    return 0;
}
