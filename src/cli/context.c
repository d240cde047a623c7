#include "cli/context.h"

#include "base/error.h"
#include "base/own.h"
#include "cli/say.h"
#include "gateway/registries.h"
#include "gateway/rules.h"
#include "keeper/program.h"
#include "keeper/reel.h"
#include "spec/file.h"
#include "spec/mock.h"

#include <fcntl.h>
#include <string.h>

void context_free(struct context *context)
{
    trees_free(&context->trees);
    workspace_free(&context->workspace);
    spec_free(&context->spec);
    spec_origins_free(&context->origins);
    host_free(&context->host);
    options_free(&context->options);
    *context = CONTEXT_NONE;
}

/* Who writes a certificate wrongly hears of it now, and not from a client inside. */
int context_check_bundles(const struct rule_list *rules, struct error *err)
{
    for (size_t i = 0; i < rules->len; i++) {
        const struct rule *rule = &rules->items[i];

        if (rule->ca && program_check_bundle(rule->ca, err) < 0)
            return error_while(err, "%s: the ca of %s", rule->place ? rule->place : "network.rules",
                               rule->host);
    }
    return 0;
}

/* Who types a flag and gets less than it says must not find that out by himself. */
static void tell_of_narrowed_flags(const struct spec_origins *origins)
{
    for (size_t i = 0; i < origins->len; i++) {
        const struct origin *flag = &origins->items[i];

        for (size_t j = 0; flag->layer == LAYER_OWNER && flag->place[0] == '-' && j < origins->len; j++) {
            const struct origin *other = &origins->items[j];

            if (other->field == flag->field && other->layer == LAYER_REPOSITORY &&
                other->effect == ORIGIN_NARROWS)
                say_warning("%s allows less than %s says (cove policy show)", other->place, flag->place);
        }
    }
}

int context_read(struct context *context, struct error *err)
{
    autofree char *owner_file = NULL;
    const struct host *host = &context->host;
    struct spec_sources sources;

    if (host_read(&context->host, err) < 0)
        return -1;
    spec_sources_usual(&sources, host->home, host->cwd, host->uid, host->environ, &owner_file);
    if (spec_read(&context->options.spec, &sources, &context->spec, &context->origins, err) < 0 ||
        context_check_bundles(&context->spec.rules, err) < 0)
        return -1;

    int recalled =
        context->recall ? context->recall(context->owner, host, &context->workspace, &context->trees, err) : 1;

    if (recalled <= 0)
        return recalled;
    if (workspace_find(&context->spec, host, &context->workspace, &context->trees, err) < 0)
        return -1;

    autoclose int tree = open(context->workspace.root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (tree < 0)
        return error_sys(err, "open the workspace %s", context->workspace.root);
    if (spec_narrow_by_repository(&context->spec, tree, context->workspace.root, &context->origins, err) < 0)
        return -1;
    tell_of_narrowed_flags(&context->origins);
    return 0;
}

struct registry_places context_registries(const struct context *context)
{
    const struct host *host = &context->host;

    return (struct registry_places){ "", host->home, context->workspace.root, host->uid, host->environ };
}

int context_rules(const struct context *context, struct rules *out, struct error *err)
{
    const struct host *host = &context->host;
    const struct registry_places places = context_registries(context);
    const struct file_rules trusted = { host->uid, 0, "you or root", true };
    autostrings struct strings notes = STRINGS_NONE;

    const char *why = rules_of_spec(&context->spec, &places, out, &notes);

    for (size_t i = 0; i < notes.len; i++)
        say_warning("%s", notes.items[i]);
    if (why && context->spec.network != NETWORK_NONE)
        error_set(err, ERROR_INVALID, "network.upstream-proxy: the proxy %s", why);
    else if (mocks_load(&out->list, &trusted, err) == 0)
        return 0;
    rules_free(out);
    return -1;
}

int context_reel(const struct context *context, const struct trees *trees, bool again, struct reel *out,
                 struct error *err)
{
    if (reel_open(&context->spec, trees, again, out, err) < 0) {
        reel_close(out);
        return -1;
    }
    if (out->broken)
        say_warning("%s: lines that are no exchange are left out: %zu, the first is line %zu",
                    context->spec.replay, out->broken, out->first_bad);
    return 0;
}
