#include "gateway/url.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct scheme {
    const char *name;
    uint16_t port;
    bool tls;
} schemes[] = {
    { "http://", 80, false },
    { "https://", 443, true },
    { "ws://", 80, false },
    { "wss://", 443, true },
};

static const struct scheme *find_scheme(const char *text)
{
    for (size_t i = 0; i < ARRAY_LEN(schemes); i++)
        if (strncasecmp(text, schemes[i].name, strlen(schemes[i].name)) == 0)
            return &schemes[i];
    return NULL;
}

static const char *read_port(const char *at, size_t len, uint16_t *out)
{
    unsigned long value = 0;

    if (len == 0 || len > 5 || at[0] == '0')
        return "has no port from 1 to 65535";
    for (size_t i = 0; i < len; i++) {
        if (at[i] < '0' || at[i] > '9')
            return "has no port from 1 to 65535";
        value = value * 10 + (unsigned long)(at[i] - '0');
    }
    if (value > UINT16_MAX)
        return "has no port from 1 to 65535";
    *out = (uint16_t)value;
    return NULL;
}

static const char *read_authority(const char *at, size_t len, struct url *out)
{
    const char *user = memrchr(at, '@', len), *closing, *colon, *why = NULL;

    if (user) {
        len -= (size_t)(user + 1 - at);
        at = user + 1;
    }
    closing = len && at[0] == '[' ? memchr(at, ']', len) : NULL;
    colon = closing ? closing + 1 : memchr(at, ':', len);
    if (colon && colon < at + len) {
        if (*colon != ':')
            return "has something behind its address that is no port";
        why = read_port(colon + 1, (size_t)(at + len - colon - 1), &out->port);
        len = (size_t)(colon - at);
    }
    return why ? why : hostname_read(at, len, &out->host);
}

const char *url_read(const char *text, struct url *out)
{
    size_t name = strspn(text, "abcdefghijklmnopqrstuvwxyz");
    const struct scheme *scheme = find_scheme(text[name] == '+' ? text + name + 1 : text);
    const char *at, *why;
    size_t len;

    if (!scheme)
        return "is no address of the web (http:// or https://)";
    at = strstr(text, "://") + strlen("://");
    len = strcspn(at, "/?#\\");
    if (at[len] == '\\')
        return "has a backslash, which programs read differently";
    *out = (struct url){ .port = scheme->port, .tls = scheme->tls };
    why = read_authority(at, len, out);
    out->path = at[len] == '/' ? at + len : "/";
    return why;
}
