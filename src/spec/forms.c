#include "spec/forms.h"

#include "base/own.h"
#include "base/text.h"

#include <string.h>

const char *const tree_mode_names[] = { [TREE_RO] = "ro", [TREE_COW] = "cow" };

static bool refuse(struct text *why, const char *what)
{
    text_add(why, what);
    return false;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_plain(char c)
{
    return c > 0x20 && c < 0x7f;
}

bool form_any(const struct form_context *context, const char *in, char **out, struct text *why)
{
    (void)context;
    (void)why;
    *out = text_copy(in);
    return true;
}

bool form_word(const struct form_context *context, const char *in, char **out, struct text *why)
{
    if (!*in)
        return refuse(why, "must not be empty");
    return form_any(context, in, out, why);
}

/* Paths */

/* Takes "." and ".." and double slashes out of an absolute path, by its letters alone: what is
 * checked against a ceiling is exactly what is opened later, links or not. */
static char *clean_path(const char *path)
{
    struct text out = TEXT_NONE;

    while (*path) {
        size_t len = strcspn(path, "/");

        if (len == 2 && memcmp(path, "..", 2) == 0) {
            while (out.len && out.data[--out.len] != '/')
                ;
            text_cut(&out, out.len);
        } else if (len && !(len == 1 && *path == '.')) {
            text_add(&out, "/");
            text_add_bytes(&out, path, len);
        }
        path += len + (path[len] == '/');
    }
    if (!out.len)
        text_add(&out, "/");
    return text_steal(&out);
}

bool form_path(const struct form_context *context, const char *in, char **out, struct text *why)
{
    autofree char *whole = NULL;

    if (!*in)
        return refuse(why, "must not be empty");
    if (in[0] == '~' && in[1] && in[1] != '/')
        return refuse(why, "names another user's home: write its path, or ./~name for a file of that name");
    if (in[0] == '/')
        whole = text_copy(in);
    else if (in[0] == '~' && context->home)
        whole = text_format("%s/%s", context->home, in + 1);
    else if (in[0] != '~' && context->cwd)
        whole = text_format("%s/%s", context->cwd, in);
    else
        return refuse(why,
                      context->home ? "must be an absolute path or begin with ~/" : "must be an absolute path");
    *out = clean_path(whole);
    return true;
}

bool form_directory(const struct form_context *context, const char *in, char **out, struct text *why)
{
    return strcmp(in, ".") == 0 ? form_any(context, in, out, why) : form_path(context, in, out, why);
}

bool form_image(const struct form_context *context, const char *in, char **out, struct text *why)
{
    if (strcmp(in, "host") == 0)
        return form_any(context, in, out, why);

    /* A bare name is kept free for images that are pulled and named. */
    if (!strchr(in, '/') && in[0] != '~' && in[0] != '.')
        return refuse(why, "must be host or a directory (write ./NAME for one that is here)");
    return form_path(context, in, out, why);
}

static bool has_open_set(const char *pattern)
{
    for (const char *at = pattern; *at; at++) {
        if (*at == '\\' && at[1])
            at++;
        else if (*at == '[' && !(at = strchr(at, ']')))
            return true;
    }
    return false;
}

bool form_pattern(const struct form_context *context, const char *in, char **out, struct text *why)
{
    const char *at = in;

    if (!*in)
        return refuse(why, "must not be empty");
    if (has_open_set(in))
        return refuse(why, "has a [ without a ]; for a name that has one write \\[");
    while (*at) {
        size_t len = strcspn(at, "/");

        if (len == 2 && memcmp(at, "..", 2) == 0)
            return refuse(why, "must not have .. in it: patterns match below the trees that are visible");
        at += len + (at[len] == '/');
    }
    return form_any(context, in, out, why);
}

/* Names */

/* One id in plain decimal, with exactly one way to write each; the last one, -1, means "leave
 * as it is" to the kernel. */
static const char *skip_id(const char *at)
{
    uint64_t value = 0;
    const char *begin = at;

    while (is_digit(*at) && value <= UINT32_MAX)
        value = value * 10 + (uint64_t)(*at++ - '0');
    if (at == begin || (*begin == '0' && at > begin + 1) || value >= UINT32_MAX)
        return NULL;
    return at;
}

bool form_user(const struct form_context *context, const char *in, char **out, struct text *why)
{
    if (strcmp(in, "root") != 0) {
        const char *at = skip_id(in);

        if (at && *at == ':')
            at = skip_id(at + 1);
        if (!at || *at)
            return refuse(why, "must be root, NUMBER or NUMBER:NUMBER, each from 0 to 4294967294");
    }
    return form_any(context, in, out, why);
}

bool form_hostname(const struct form_context *context, const char *in, char **out, struct text *why)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.";
    size_t len = strlen(in);

    if (!len || len > 63 || strspn(in, letters) != len || strchr("-.", in[0]) || strchr("-.", in[len - 1]) ||
        strstr(in, ".."))
        return refuse(why, "must be a host name: letters, digits, - and . inside, at most 63");
    return form_any(context, in, out, why);
}

static const char *host_value(char **list, const char *name)
{
    size_t len = strlen(name);

    for (; *list; list++)
        if (strncmp(*list, name, len) == 0 && (*list)[len] == '=')
            return *list;
    return NULL;
}

bool form_env(const struct form_context *context, const char *in, char **out, struct text *why)
{
    size_t name = strcspn(in, "=");
    const char *whole = in;

    for (size_t i = 0; i < name; i++)
        if (!is_plain(in[i]))
            return refuse(why, "must have a name of plain letters, without spaces");
    if (*in == '-')
        return refuse(why, "must be KEY=VALUE or KEY, and that is an option");
    if (!name)
        return refuse(why, "must be KEY=VALUE, or KEY to take the value from here");
    if (!in[name] && !context->environ)
        return refuse(why, "must be KEY=VALUE");
    if (!in[name])
        whole = host_value(context->environ, in);
    *out = whole ? text_copy(whole) : NULL;
    return true;
}

/* Durations */

static const struct unit {
    const char *name;
    uint64_t millis;
} units[] = { { "d", 86400000 }, { "h", 3600000 }, { "m", 60000 }, { "s", 1000 }, { "ms", 1 } };

/* Reads NUMBER and, if the letters behind it are one of the units from *unit on, that unit.
 * Returns what follows, or NULL. */
static const char *read_part(const char *at, size_t *unit, uint64_t *sum)
{
    uint64_t number = 0, part;
    const char *begin = at;

    for (; is_digit(*at); at++)
        if (__builtin_mul_overflow(number, 10U, &number) ||
            __builtin_add_overflow(number, (uint64_t)(*at - '0'), &number))
            return NULL;
    if (at == begin)
        return NULL;

    size_t letters = strcspn(at, "0123456789");

    for (; *unit < ARRAY_LEN(units); ++*unit) {
        if (strlen(units[*unit].name) != letters || memcmp(at, units[*unit].name, letters) != 0)
            continue;
        if (__builtin_mul_overflow(number, units[*unit].millis, &part) ||
            __builtin_add_overflow(*sum, part, sum))
            return NULL;
        ++*unit; /* each unit once, in this order: 1h30m is one way to write it, 30m1h is a mistake */
        return at + letters;
    }
    return NULL;
}

bool form_duration(const char *in, uint64_t *out, struct text *why)
{
    autofree char *seconds = NULL;
    const char *at = in;
    size_t unit = 0;

    *out = 0;
    if (strcmp(in, "none") == 0)
        return true;
    if (*in && !in[strspn(in, "0123456789")]) {
        seconds = text_format("%ss", in);
        at = seconds;
    }
    do
        at = read_part(at, &unit, out);
    while (at && *at);
    if (at && *out == 0)
        return refuse(why, "must be longer than nothing; `none` is no limit");
    return at || refuse(why, "must be a duration such as 30m, 1h30m, 7d, 500ms, plain seconds, or none");
}

void form_duration_show(uint64_t value, struct text *out)
{
    if (!value)
        text_add(out, "none");
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        if (value / units[i].millis)
            text_addf(out, "%llu%s", (unsigned long long)(value / units[i].millis), units[i].name);
        value %= units[i].millis;
    }
}

/* Amounts */

static const struct {
    const char *must;
    const char *suffixes; /* each is 1024 of the one before */
    unsigned decimals;
} amounts[] = {
    [TYPE_BYTES] = { "must be a size such as 512M, 4G, 64K, plain bytes, or none", "KMGTP", 0 },
    [TYPE_NUMBER] = { "must be a whole number, or none", "", 0 },
    [TYPE_CPUS] = { "must be a number of processors such as 2, 1.5, 0.25, or none", "", 3 },
};

/* Digits, and so many more behind a point: the number times 10 to the power of `decimals`. */
static const char *read_digits(const char *at, unsigned decimals, uint64_t *out)
{
    bool point = false;

    if (!is_digit(*at))
        return NULL;
    for (*out = 0; is_digit(*at) || (*at == '.' && decimals && !point && is_digit(at[1])); at++) {
        if (*at == '.') {
            point = true;
            continue;
        }
        if (point && !decimals--)
            return NULL;
        if (__builtin_mul_overflow(*out, 10U, out) || __builtin_add_overflow(*out, (uint64_t)(*at - '0'), out))
            return NULL;
    }
    while (decimals--)
        if (__builtin_mul_overflow(*out, 10U, out))
            return NULL;
    return at;
}

bool form_amount(enum field_type type, const char *in, uint64_t *out, struct text *why)
{
    const char *suffixes = amounts[type].suffixes;
    const char *at, *suffix;

    *out = 0;
    if (strcmp(in, "none") == 0)
        return true;
    at = read_digits(in, amounts[type].decimals, out);
    suffix = at && *at ? strchr(suffixes, *at) : NULL;
    if (!at || (*at && (!suffix || at[1])))
        return refuse(why, amounts[type].must);
    for (ptrdiff_t power = suffix ? suffix - suffixes + 1 : 0; power > 0; power--)
        if (__builtin_mul_overflow(*out, 1024U, out))
            return refuse(why, amounts[type].must);
    return *out || refuse(why, "must be more than nothing; `none` is no limit");
}

void form_amount_show(enum field_type type, uint64_t value, struct text *out)
{
    const char *suffixes = amounts[type].suffixes;
    size_t power = 0;

    if (!value) {
        text_add(out, "none");
        return;
    }
    while (power < strlen(suffixes) && value % 1024 == 0) {
        value /= 1024;
        power++;
    }
    if (type == TYPE_CPUS && value % 1000) {
        size_t zeros = value % 10 ? 0 : value % 100 ? 1 : 2;

        text_addf(out, "%llu.%03llu", (unsigned long long)value / 1000, (unsigned long long)value % 1000);
        out->data[out->len -= zeros] = '\0';
        return;
    }
    text_addf(out, "%llu", (unsigned long long)(type == TYPE_CPUS ? value / 1000 : value));
    if (power)
        text_add_bytes(out, suffixes + power - 1, 1);
}

/* Volumes */

bool form_volume_parts(const struct form_context *context, const char *source, const char *target,
                       const char *mode, struct volume *out, struct text *why)
{
    const struct form_context inside = { 0 };
    size_t found = 0;

    while (found < ARRAY_LEN(tree_mode_names) && strcmp(mode, tree_mode_names[found]) != 0)
        found++;
    if (found == ARRAY_LEN(tree_mode_names))
        return refuse(why, "must end in ro (read only) or cow (copy on write); the host's own files are not "
                           "written through a volume");
    if (!strchr(source, '/') && source[0] != '~' && source[0] != '.')
        return refuse(why, "must begin with a path (write ./NAME for a directory that is here)");

    autofree char *from = NULL, *to = NULL;

    if (!form_path(context, source, &from, why))
        return false;
    if (!form_path(&inside, target, &to, why) || strcmp(to, "/") == 0) {
        text_clear(why);
        return refuse(why, "must have an absolute path, and not /, as the place inside");
    }
    *out = (struct volume){ steal_ptr(&from), steal_ptr(&to), (enum tree_mode)found };
    return true;
}

/* Splits at colons that have no backslash before them. */
static void split(const char *in, struct strings *parts)
{
    struct text part = TEXT_NONE;

    for (; *in; in++) {
        if (*in == ':') {
            strings_take(parts, text_steal(&part));
            continue;
        }
        if (*in == '\\' && (in[1] == ':' || in[1] == '\\'))
            in++;
        text_add_bytes(&part, in, 1);
    }
    strings_take(parts, text_steal(&part));
}

bool form_volume(const struct form_context *context, const char *in, struct volume *out, struct text *why)
{
    autostrings struct strings parts = STRINGS_NONE;

    split(in, &parts);
    if (parts.len < 2 || parts.len > 3)
        return refuse(why, "must be SRC:DST, SRC:DST:ro or SRC:DST:cow (\\: for a colon in a path)");
    return form_volume_parts(context, parts.items[0], parts.items[1],
                             parts.len == 3 ? parts.items[2] : tree_mode_names[TREE_COW], out, why);
}

static void add_escaped(struct text *out, const char *path)
{
    for (; *path; path++) {
        if (*path == ':' || *path == '\\')
            text_add(out, "\\");
        text_add_bytes(out, path, 1);
    }
}

void form_volume_show(const struct volume *volume, struct text *out)
{
    add_escaped(out, volume->source);
    text_add(out, ":");
    add_escaped(out, volume->target);
    text_addf(out, ":%s", tree_mode_names[volume->mode]);
}

bool form_registry(const struct form_context *context, const char *in, char **out, struct text *why)
{
    (void)context;
    for (size_t i = 0; i < REGISTRY_COUNT; i++)
        if (strcmp(in, registry_names[i]) == 0) {
            *out = text_copy(in);
            return true;
        }
    text_add(why, "must be one of apt, cargo, go, npm, pip");
    return false;
}

/* Where the gateway itself is asked (net/places.h). */
enum { SERVICE_PORT_NAMES = 53, SERVICE_PORT_GATEWAY = 1019 };

bool form_service_port(const struct form_context *context, const char *in, char **out, struct text *why)
{
    size_t digits = strspn(in, "0123456789");
    unsigned long port = digits && digits <= 5 ? strtoul(in, NULL, 10) : 0;

    (void)context;
    if (in[digits] || in[0] == '0' || port == 0 || port > UINT16_MAX)
        return refuse(why, "must be a port from 1 to 65535");
    if (port == SERVICE_PORT_NAMES || port == SERVICE_PORT_GATEWAY)
        return refuse(why, "is the gateway's own port inside (53 and 1019 are)");
    *out = text_copy(in);
    return true;
}

bool form_proxy(const struct form_context *context, const char *in, char **out, struct text *why)
{
    static const char scheme[] = "http://";
    size_t len = strlen(in);

    if (strcmp(in, "none") == 0 || strcmp(in, "environment") == 0)
        return form_any(context, in, out, why);
    for (size_t i = 0; i < len; i++)
        if (!is_plain(in[i]))
            return refuse(why, "must not have spaces or letters of other scripts");
    if (!text_starts(in, scheme) || !in[sizeof scheme - 1])
        return refuse(why, "must be none, environment, or a proxy as http://HOST:PORT");
    return form_any(context, in, out, why);
}
