#include "cli/context.h"

#include "base/error.h"
#include "base/own.h"
#include "cli/say.h"
#include "gateway/registries.h"
#include "gateway/rules.h"

#include <fcntl.h>

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

int context_read(struct context *context, struct error *err)
{
    autofree char *owner_file = NULL;
    const struct host *host = &context->host;
    struct spec_sources sources;

    if (host_read(&context->host, err) < 0)
        return -1;
    spec_sources_usual(&sources, host->home, host->cwd, host->uid, host->environ, &owner_file);
    if (spec_read(&context->options.spec, &sources, &context->spec, &context->origins, err) < 0)
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
    return spec_narrow_by_repository(&context->spec, tree, context->workspace.root, &context->origins, err);
}

void context_rules(const struct context *context, struct rules *out)
{
    const struct host *host = &context->host;
    const struct registry_places places = { "", host->home, context->workspace.root, host->uid, host->environ };
    autostrings struct strings notes = STRINGS_NONE;

    rules_of_spec(&context->spec, &places, out, &notes);
    for (size_t i = 0; i < notes.len; i++)
        say_warning("%s", notes.items[i]);
}
