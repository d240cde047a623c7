#include "gateway/proxy.h"

#include "base/own.h"
#include "base/text.h"
#include "gateway/url.h"

#include <stdlib.h>
#include <string.h>

static const char *value_of(char **variables, const char *name)
{
    size_t len = strlen(name);

    for (; variables && *variables; variables++)
        if (strncmp(*variables, name, len) == 0 && (*variables)[len] == '=' && (*variables)[len + 1])
            return *variables + len + 1;
    return NULL;
}

static const char *first_of(char **variables, const char *const *names)
{
    const char *found = NULL;

    for (; !found && *names; names++)
        found = value_of(variables, *names);
    return found;
}

static int hex(char letter)
{
    static const char digits[] = "0123456789abcdefABCDEF";
    const char *found = letter ? strchr(digits, letter) : NULL;
    int value = found ? (int)(found - digits) : -1;

    return value < 16 ? value : value - 6;
}

/* USER:PASSWORD of a URL, where % stands for letters that a URL cannot have. */
static char *read_authorization(const char *at, size_t len)
{
    autotext struct text plain = TEXT_NONE;
    struct text out = TEXT_NONE;

    for (size_t i = 0; i < len; i++) {
        bool escaped = at[i] == '%' && i + 2 < len && hex(at[i + 1]) >= 0 && hex(at[i + 2]) >= 0;
        char letter = at[i];

        if (escaped)
            letter = (char)(hex(at[i + 1]) * 16 + hex(at[i + 2]));
        text_add_bytes(&plain, &letter, 1);
        i += escaped ? 2 : 0;
    }
    text_add(&out, "Basic ");
    text_add_base64(&out, plain.data, plain.len);
    return text_steal(&out);
}

/* Names, with or without a dot before them, and addresses; what is neither (a network) is passed over. */
static void read_except(const char *list, struct strings *out)
{
    while (list && *list) {
        size_t len = strcspn(list, ", ");
        size_t dot = *list == '.' || strncmp(list, "*.", 2) == 0 ? (*list == '.' ? 1 : 2) : 0;
        struct hostname host;

        if (len == 1 && *list == '*')
            strings_add(out, "*");
        else if (len > dot && !hostname_read(list + dot, len - dot, &host))
            strings_add(out, host.text);
        list += len + (list[len] != '\0');
    }
}

static const char *read_url(const char *text, struct proxy *out)
{
    const char *authority = strstr(text, "://"), *user;
    struct url url;
    const char *why = authority ? url_read(text, &url) : "must begin with http://";

    if (why || url.tls)
        return why ? why : "is a proxy that is spoken to by TLS, which this version cannot do";
    authority += strlen("://");
    user = memrchr(authority, '@', strcspn(authority, "/?#"));
    out->host = url.host;
    out->port = url.port;
    out->authorization = user ? read_authorization(authority, (size_t)(user - authority)) : NULL;
    return NULL;
}

const char *proxy_read(const char *said, char **variables, struct proxy *out)
{
    static const char *const proxies[] = { "https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY", NULL };
    static const char *const excepts[] = { "no_proxy", "NO_PROXY", NULL };
    bool of_environment = said && strcmp(said, "environment") == 0;
    const char *url = of_environment ? first_of(variables, proxies) : said;

    *out = PROXY_NONE;
    if (!url || strcmp(url, "none") == 0)
        return NULL;
    if (of_environment)
        read_except(first_of(variables, excepts), &out->except);

    const char *why = read_url(url, out);

    if (why)
        proxy_free(out);
    return why;
}

struct proxy proxy_copy(const struct proxy *proxy)
{
    struct proxy copy = *proxy;

    copy.authorization = proxy->authorization ? text_copy(proxy->authorization) : NULL;
    copy.except = STRINGS_NONE;
    strings_copy(&copy.except, &proxy->except);
    return copy;
}

void proxy_free(struct proxy *proxy)
{
    if (proxy->authorization)
        explicit_bzero(proxy->authorization, strlen(proxy->authorization));
    free(proxy->authorization);
    strings_free(&proxy->except);
    *proxy = PROXY_NONE;
}

static bool is_within(const char *name, const char *domain)
{
    size_t len = strlen(name), below = strlen(domain);

    return strcmp(name, domain) == 0 ||
           (len > below && name[len - below - 1] == '.' && strcmp(name + len - below, domain) == 0);
}

bool proxy_is_for(const struct proxy *proxy, const struct hostname *host)
{
    if (!proxy->host.text[0])
        return false;
    for (size_t i = 0; i < proxy->except.len; i++)
        if (strcmp(proxy->except.items[i], "*") == 0 || is_within(host->text, proxy->except.items[i]))
            return false;
    return true;
}

void proxy_write(const struct proxy *proxy, const struct hostname *host, uint16_t port, struct text *out)
{
    bool brackets = host->address.len == 16;
    autofree char *target =
        text_format("%s%s%s:%u", brackets ? "[" : "", host->text, brackets ? "]" : "", port);

    text_addf(out, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n", target, target);
    if (proxy->authorization)
        text_addf(out, "Proxy-Authorization: %s\r\n", proxy->authorization);
    text_add(out, "\r\n");
}
