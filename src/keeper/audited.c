#include "keeper/audited.h"

#include "base/delivery.h"
#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "keeper/outlet.h"
#include "keeper/reel.h"
#include "spec/rule_path.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RULES_MAX = 1024 }; /* as many as a policy file may have */

static bool was_audited(const struct request *request)
{
    return request->allowed && !request->failed && request->reason == REASON_AUDIT;
}

/* In one line, and of characters that no policy file refuses. */
static void add_comment(const char *before, const struct request *request, struct text *out)
{
    autotext struct text line = TEXT_NONE;

    text_addf(&line, "%s, %" PRIu64 " x: %s", gateway_protocol_name(request->protocol), request->count,
              request->why);
    for (size_t i = 0; i < line.len; i++)
        if (line.data[i] < ' ' || line.data[i] > '~')
            line.data[i] = '?';
    text_addf(out, "%s%s\n", before, text_string(&line));
}

/* It leads to where an audit does not go either: a rule for the name alone would not open it. */
static bool was_closed(const struct requests *requests, const struct request *request)
{
    for (size_t i = 0; i < requests->len; i++) {
        const struct request *other = &requests->items[i];

        if (!other->allowed && other->reason == REASON_ADDRESS && other->port == request->port &&
            strcmp(other->host, request->host) == 0)
            return true;
    }
    return false;
}

/* What follows host and port; false: no rule can say it. */
static bool add_narrower(const struct request *request, struct text *out)
{
    autotext struct text path = TEXT_NONE;
    size_t letters = strspn(request->method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-");

    if (request->without == REASON_NO_RULE || request->without == REASON_PORT)
        return true;
    if (!letters || request->method[letters] || !path_plain(request->path, &path) ||
        strchr(text_string(&path), '*') || !path_is_pattern(text_string(&path)))
        return false;
    text_addf(out, ", methods: [%s], paths: [", request->method);
    text_add_json(out, text_string(&path)); /* which YAML reads as well */
    text_add(out, "]");
    return true;
}

static bool add_rule(const struct request *request, struct text *out)
{
    struct hostname host;

    if (hostname_read(request->host, strlen(request->host), &host) || !request->port)
        return false;
    text_addf(out, "{ host: \"%s\", port: %u", host.text, request->port);
    if (!add_narrower(request, out))
        return false;
    text_add(out, " }");
    return true;
}

static void add_rules(const struct requests *requests, struct text *out, struct text *unsaid)
{
    autostrings struct strings rules = STRINGS_NONE;

    for (size_t i = 0; i < requests->len; i++) {
        const struct request *request = &requests->items[i];
        autotext struct text rule = TEXT_NONE;

        if (!was_audited(request) || was_closed(requests, request))
            continue;
        if (!add_rule(request, &rule) || rules.len == RULES_MAX) {
            add_comment("# no rule says it: ", request, unsaid);
            continue;
        }
        if (strings_have(&rules, text_string(&rule)))
            continue;
        add_comment("    # ", request, out);
        text_addf(out, "    - %s\n", text_string(&rule));
        strings_add(&rules, text_string(&rule));
    }
    if (!rules.len)
        text_add(out, "    []\n");
}

void audited_policy(const struct requests *requests, struct text *out)
{
    autotext struct text unsaid = TEXT_NONE;

    text_add(out,
             "# What an audit (cove run --audit) let through and no rule allowed: with these rules beside the\n"
             "# same policy and options it passes (--policy THIS-FILE). Each stands below the first request\n"
             "# that it is for.\n"
             "network:\n  mode: rules\n  rules:\n");
    add_rules(requests, out, &unsaid);
    text_add(out, text_string(&unsaid));
    for (size_t i = 0; i < requests->len; i++)
        if (!requests->items[i].allowed)
            add_comment("# refused by the audit too: ", &requests->items[i], out);
    if (requests->others)
        text_addf(out, "# THIS IS NOT ALL: there were %" PRIu64 " requests more than are told apart.\n",
                  requests->others);
}

int audited_open(const char *path, const struct trees *trees, struct delivery *out, struct error *err)
{
    autofree char *from_here = strchr(path, '/') ? text_copy(path) : text_format("./%s", path);
    struct stat info;

    if (reel_outside(from_here, trees, err) < 0 || delivery_open(path, out, err) < 0)
        return error_while(err, "--audit-policy");
    if (out->dir < 0 || fstatat(out->dir, out->name, &info, AT_SYMLINK_NOFOLLOW) == 0) {
        error_set(err, ERROR_REFUSED, "%.200s is there already, and no policy goes over it", path);
        return error_while(err, "--audit-policy");
    }
    return 0;
}

int audited_write(const struct delivery *place, const struct requests *requests, struct error *err)
{
    autotext struct text text = TEXT_NONE;

    audited_policy(requests, &text);
    return delivery_put_new(place, text.data, text.len, err);
}
