#include "cli/policy_set.h"

#include "base/error.h"
#include "base/file.h"
#include "base/own.h"
#include "base/text.h"
#include "box/plan.h"
#include "cli/context.h"
#include "cli/staying.h"
#include "cli/which.h"
#include "gateway/brief.h"
#include "gateway/rules.h"
#include "keeper/control.h"
#include "spec/node.h"
#include "spec/spec.h"
#include "sys/sys.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SPEC_MAX = 1 << 20 };

/* What was said of these when the sandbox was made stays: files are open. */
static bool is_lasting(const char *key)
{
    static const char *const lasting[] = { "record", "record-secrets", "replay" };

    for (size_t i = 0; i < ARRAY_LEN(lasting); i++)
        if (strcmp(key, lasting[i]) == 0)
            return true;
    return false;
}

/* The old description with the network of the new one. */
static int join(struct node *old, const struct spec *spec, struct text *out, struct error *err)
{
    autotext struct text json = TEXT_NONE;
    autonode struct node fresh = NODE_NONE;
    struct node *from, *to = node_get(old, "network");

    spec_json(spec, &json);
    if (node_read_json(text_string(&json), json.len, "the policy", &fresh, err) < 0)
        return -1;
    from = node_get(&fresh, "network");
    for (size_t i = 0; to && from && i < from->len; i++) {
        struct node *value = node_get(to, from->items[i].key);

        if (!value || is_lasting(value->key))
            continue;
        struct node held = *value;

        *value = from->items[i];
        from->items[i] = held;
    }
    node_write_json(old, out);
    return 0;
}

/* Packets to an address at another port than 80 and 443 find their way by what was set up at the start. */
static int check_ways(const struct spec *old, const struct spec *spec, struct error *err)
{
    autostrings struct strings had = STRINGS_NONE, wanted = STRINGS_NONE;

    plan_granted(old, &had);
    plan_granted(spec, &wanted);
    for (size_t i = 0; i < wanted.len; i++)
        if (!strings_have(&had, wanted.items[i]) && !strings_have(&had, "*")) {
            error_set(err, ERROR_REFUSED, "a sandbox that runs cannot be given a way to %s",
                      strcmp(wanted.items[i], "*") == 0 ? "every address" : wanted.items[i]);
            return error_hint(err, "say it when a sandbox is made: cove create");
        }
    return 0;
}

static int tell(const struct which *which, const struct kept *kept, struct context *context,
                const struct text *spec, struct error *err)
{
    autorules struct rules rules = RULES_NONE;
    autotext struct text brief = TEXT_NONE;

    if (context_rules(context, &rules, err) < 0)
        return -1;
    brief_write(&(struct brief){ 0 }, &rules, &brief);

    autoclose int told = sys_sealed_memfd("cove-brief", brief.data, brief.len),
                  described = sys_sealed_memfd("cove-spec", spec->data, spec->len);

    if (told < 0 || described < 0 || lseek(told, 0, SEEK_SET) < 0 || lseek(described, 0, SEEK_SET) < 0)
        return error_sys(err, "hand the rules over");
    if (staying_policy(which, kept, (int[]){ told, described }, err) < 0)
        return -1;
    printf("%.*s: %zu rule%s; its connections were cut\n", KEPT_ID_SHOWN, kept->id, rules.list.len,
           rules.list.len == 1 ? "" : "s");
    return 0;
}

static int set_one(const struct which *which, const struct kept *kept, struct context *context,
                   struct error *err)
{
    autofree char *path = text_format("%s/sandboxes/%s/" STORE_SPEC, which->host.state, kept->id);
    autofree char *json = file_text(AT_FDCWD, path, SPEC_MAX);
    autonode struct node old = NODE_NONE;
    autotext struct text joined = TEXT_NONE;
    struct spec before;

    if (!json)
        return error_sys(err, "read what sandbox %.*s is", KEPT_ID_SHOWN, kept->id);
    if (spec_read_json(json, strlen(json), STORE_SPEC, &before, err) < 0)
        return -1;
    int result = node_read_json(json, strlen(json), STORE_SPEC, &old, err) < 0 ||
                         check_ways(&before, &context->spec, err) < 0 ||
                         join(&old, &context->spec, &joined, err) < 0 ||
                         tell(which, kept, context, &joined, err) < 0
                     ? -1
                     : 0;

    spec_free(&before);
    return result;
}

/* Where it was made, so that the same repository has its say; but not before the owner's files were read: what
 * lies there under the name of one is whatever the sandbox has put there. */
static int go_to_work_tree(void *owner, const struct host *host, struct workspace *workspace,
                           struct trees *trees, struct error *err)
{
    (void)host;
    (void)workspace;
    (void)trees;
    if (chdir(owner) < 0)
        return error_sys(err, "go to %s, the sandbox's work tree", (const char *)owner);
    return 1;
}

int policy_set(struct context *context, struct error *err)
{
    autowhich struct which which = WHICH_NONE;
    autoclose int here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    const struct strings *words = &context->options.words;

    if (words->len != 1)
        return error_set(err, ERROR_INVALID,
                         "say which sandbox, behind all options: cove policy set [--allow HOST ...] SANDBOX");
    if (which_read_for(&which, words->items[0], err) < 0)
        return -1;

    const struct kept *kept = which_sandbox(&which, words->items[0], err);

    if (!kept)
        return -1;
    strings_free(&context->options.spec.command); /* the words are no command here */
    context->recall = go_to_work_tree;
    context->owner = kept->record.workspace;
    if (context_read(context, err) < 0)
        return -1;
    if (fchdir(here) < 0)
        return error_sys(err, "go back to where the policy's files are");
    return set_one(&which, kept, context, err);
}
