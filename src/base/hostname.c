#include "base/hostname.h"

#include "base/array.h"
#include "base/text.h"

#include <string.h>

static bool is_lower(char byte)
{
    return byte >= 'a' && byte <= 'z';
}

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

static const char *check_label(const char *label, size_t len)
{
    if (len == 0)
        return "has an empty label";
    if (len > 63)
        return "has a label of more than 63 bytes";
    if (label[0] == '-' || label[len - 1] == '-')
        return "has a label that begins or ends with a hyphen";
    return NULL;
}

/* 12 and 0x1f: what ends in such a label is taken for an address by one program and for a name by another. */
static bool is_number(const char *label)
{
    size_t digits = strspn(label, "0123456789");

    if (label[digits] == '\0')
        return true;
    return text_starts(label, "0x") && label[2 + strspn(label + 2, "0123456789abcdef")] == '\0';
}

static const char *check_byte(char byte)
{
    if ((unsigned char)byte >= 0x80)
        return "has characters that no name on the wire has; write its xn-- form";
    if (!is_lower(byte) && !is_digit(byte) && byte != '-' && byte != '.')
        return "has characters other than letters, digits, hyphens and dots";
    return NULL;
}

static const char *read_name(const char *bytes, size_t len, char out[HOSTNAME_SIZE])
{
    char name[HOSTNAME_SIZE];
    const char *why = NULL, *label = name;

    if (len && bytes[len - 1] == '.')
        len--;
    if (len == 0)
        return "is empty";
    if (len >= sizeof name)
        return "is longer than 253 bytes";
    for (size_t i = 0; i < len && !why; i++) {
        name[i] = text_small(bytes[i]);
        why = check_byte(name[i]);
    }
    name[len] = '\0';
    for (const char *dot; !why; label = dot + 1) {
        dot = strchrnul(label, '.');
        why = check_label(label, (size_t)(dot - label));
        if (!*dot)
            break;
    }
    if (!why && is_number(label))
        why = "ends in a number, as no name does";
    if (why)
        return why;
    memcpy(out, name, len + 1);
    return NULL;
}

const char *hostname_read(const char *bytes, size_t len, struct hostname *out)
{
    struct address address;
    const char *why = NULL;

    *out = HOSTNAME_NONE;
    switch (address_read(bytes, len, &address)) {
    case ADDRESS_PLAIN:
        out->address = address;
        address_show(&address, out->text);
        break;
    case ADDRESS_ODD:
        return "is an odd spelling of an address; write 192.0.2.1 or 2001:db8::1";
    case ADDRESS_NOT:
        why = read_name(bytes, len, out->text);
        break;
    }
    return why;
}

/* Names that lead to the address of a cloud's metadata service.  That address is refused as well: this only
 * spares the question. */
static const char *const metadata_names[] = {
    "metadata.google.internal",
    "metadata.goog",
    "instance-data.ec2.internal",
    "metadata.tencentyun.com",
};

bool hostname_is_local(const struct hostname *host)
{
    if (hostname_is_address(host))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(metadata_names); i++)
        if (strcmp(host->text, metadata_names[i]) == 0)
            return true;
    return !strchr(host->text, '.') || text_ends(host->text, ".localhost") || text_ends(host->text, ".local");
}

/* Patterns */

const char *hostname_read_pattern(const char *bytes, size_t len, char out[HOSTNAME_SIZE + 2])
{
    struct hostname host;
    const char *why;
    size_t star = len > 1 && bytes[0] == '*' && bytes[1] == '.' ? 2 : 0;

    if (len == 1 && bytes[0] == '*') {
        memcpy(out, "*", sizeof "*");
        return NULL;
    }
    if (memchr(bytes + star, '*', len - star))
        return "must have no * but one at its beginning, as in *.example.com";
    why = hostname_read(bytes + star, len - star, &host);
    if (!why && star && hostname_is_address(&host))
        why = "must have a name behind the *., not an address";
    if (why)
        return why;
    memcpy(out, "*.", star);
    memcpy(out + star, host.text, strlen(host.text) + 1);
    return NULL;
}

static bool is_below(const char *name, const char *suffix)
{
    return strlen(name) > strlen(suffix) + 1 && text_ends(name, suffix) &&
           name[strlen(name) - strlen(suffix) - 1] == '.';
}

bool hostname_matches(const char *pattern, const struct hostname *host)
{
    if (pattern[0] != '*')
        return strcmp(pattern, host->text) == 0;
    if (hostname_is_address(host))
        return false;
    return pattern[1] == '\0' || is_below(host->text, pattern + 2);
}

/* An address has digits, or colons, where its last label would be. */
static bool pattern_is_address(const char *pattern)
{
    const char *last = strrchr(pattern, '.');

    return strchr(pattern, ':') || is_number(last ? last + 1 : pattern);
}

bool hostname_pattern_within(const char *pattern, const char *other)
{
    const char *name = pattern[0] == '*' && pattern[1] ? pattern + 2 : pattern;

    if (strcmp(pattern, other) == 0)
        return true;
    if (other[0] != '*' || pattern_is_address(pattern))
        return false;
    if (other[1] == '\0')
        return true;
    return pattern[0] == '*' ? pattern[1] && is_below(name, other + 2) : is_below(name, other + 2);
}

/* Second labels under which countries register everybody's names. */
static const char *const registered_below[] = {
    "ac", "co", "com", "edu", "gob", "gov", "gv", "info", "mil", "ne", "net", "nom", "or", "org", "sch",
};

/* Names under which anybody gets one of their own for nothing.  Not all of them: there is no end to such a
 * list. */
static const char *const given_away[] = {
    "amazonaws.com", "appspot.com",     "azurewebsites.net", "blogspot.com", "cloudfront.net",
    "deno.dev",      "firebaseapp.com", "fly.dev",           "github.io",    "githubpreview.dev",
    "gitlab.io",     "glitch.me",       "herokuapp.com",     "netlify.app",  "ngrok-free.app",
    "ngrok.app",     "ngrok.io",        "onrender.com",      "pages.dev",    "repl.co",
    "replit.app",    "replit.dev",      "run.app",           "surge.sh",     "trycloudflare.com",
    "vercel.app",    "web.app",         "workers.dev",
};

bool hostname_pattern_is_broad(const char *pattern)
{
    if (pattern[0] != '*')
        return false;
    if (pattern[1] == '\0')
        return true;

    const char *suffix = pattern + 2, *dot = strchr(suffix, '.');

    if (!dot)
        return true;
    for (size_t i = 0; i < ARRAY_LEN(given_away); i++)
        if (strcmp(suffix, given_away[i]) == 0)
            return true;
    if (strchr(dot + 1, '.') || strlen(dot + 1) != 2)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(registered_below); i++)
        if (strlen(registered_below[i]) == (size_t)(dot - suffix) &&
            strncmp(suffix, registered_below[i], (size_t)(dot - suffix)) == 0)
            return true;
    return false;
}
