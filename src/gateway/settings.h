#pragma once

/* Lines of the configuration of other people's tools, as far as we need them: npmrc and pip.conf, go's env,
 * config.toml of cargo, both kinds of apt's sources.  What is not understood is passed over: it grants nothing.
 */

#include <stddef.h>

enum settings_form {
    SETTINGS_EQUALS, /* [section], key = value; an indented line goes on with the value before */
    SETTINGS_COLON,  /* Key: value; an indented line goes on with it */
    SETTINGS_DEB,    /* deb [options] value ...: the key is "deb" */
};

/* `key` has its section before it ("global.index-url"), in lower case and with - for _; `value` is one word of
 * the value, without quotes.  Both only during the call. */
typedef void settings_found(void *owner, const char *key, const char *value);

void settings_read(const char *bytes, size_t len, enum settings_form form, settings_found *found, void *owner);
