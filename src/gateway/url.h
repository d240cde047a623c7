#pragma once

#include "base/hostname.h"

/* Where a URL leads. */
struct url {
    struct hostname host;
    uint16_t port;
    const char *path; /* in the text that was read; "/" if it has none */
    bool tls;         /* https, wss */
};

/* Takes http, https, ws and wss, also behind "NAME+" as cargo writes it, and with a user, who is passed over.
 * NULL, or why it is refused, as the end of a sentence that begins with the URL. */
const char *url_read(const char *text, struct url *out);
