#include "cli/policy.h"

#include "base/array.h"
#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "cli/policy_explain.h"
#include "cli/policy_set.h"
#include "cli/say.h"
#include "spec/file.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

const struct option_row options_of_policy[] = {
    { .name = "json", .help = "Print JSON", .type = OPTION_BOOL, .at = offsetof(struct run_options, json) },
    { "method", 'X', "METHOD", "Explain requests with this method, such as POST", OPTION_STRING,
      offsetof(struct run_options, method) },
    { .name = NULL },
};

static int show(struct context *context, struct error *err)
{
    autotext struct text text = TEXT_NONE;

    if (context_read(context, err) < 0)
        return -1;
    if (context->options.run.json)
        spec_origins_json(&context->origins, &context->spec, &text);
    else
        spec_origins_show(&context->origins, &context->spec, &text);
    if (!text_ends(text_string(&text), "\n"))
        text_add(&text, "\n");
    fputs(text_string(&text), stdout);
    return 0;
}

/* Whose file it would be, by its name. */
static enum layer_kind kind_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    if (strcmp(path, SPEC_ADMIN_FILE) == 0)
        return LAYER_ADMIN;
    return strcmp(slash ? slash + 1 : path, SPEC_REPOSITORY_FILE) == 0 ? LAYER_REPOSITORY : LAYER_OWNER;
}

static int check_file(const struct spec_sources *sources, const char *path)
{
    static const char *const whose[] = { [LAYER_ADMIN] = "the administrator's",
                                         [LAYER_OWNER] = "the owner's",
                                         [LAYER_REPOSITORY] = "the repository's" };
    autotext struct text bytes = TEXT_NONE, shown = TEXT_NONE;
    enum layer_kind kind = kind_of(path);
    struct rule_list rules = RULE_LIST_NONE;
    struct error err = { 0 };
    bool wrong;

    text_add_inert(&shown, path);
    wrong = file_read_named(path, &bytes, &err) < 0 ||
            spec_check_files(text_string(&bytes), bytes.len, path, kind, sources, &rules, &err) < 0 ||
            context_check_bundles(&rules, &err) < 0;
    rule_list_free(&rules);
    if (wrong) {
        (void)say_error(&err);
        return 1;
    }
    printf("%s: can be read as %s\n", text_string(&shown), whose[kind]);
    return 0;
}

static int check(struct context *context, struct error *err)
{
    const struct strings *files = &context->options.words;
    const struct host *host = &context->host;
    autofree char *owner_file = NULL;
    struct spec_sources sources;
    int result = 0;

    if (!files->len)
        return error_set(err, ERROR_INVALID, "say which file: cove policy check FILE");
    if (host_read(&context->host, err) < 0)
        return -1;
    spec_sources_usual(&sources, host->home, host->cwd, host->uid, host->environ, &owner_file);
    for (size_t i = 0; i < files->len; i++)
        result |= check_file(&sources, files->items[i]);
    return result;
}

static int explain(struct context *context, struct error *err)
{
    if (!context->options.words.len)
        return error_set(err, ERROR_INVALID, "say which URL: cove policy explain URL");
    strings_free(&context->options.spec.command); /* the words are no command here */
    if (context_read(context, err) < 0)
        return -1;
    return policy_explain(context, err);
}

static int show_only(struct context *context, struct error *err)
{
    const struct strings *words = &context->options.words;

    if (words->len)
        return error_set(err, ERROR_INVALID,
                         "`cove policy` has no verb `%.60s`; there are show, explain, check and set",
                         words->items[0]);
    return show(context, err);
}

const char *const policy_verbs[] = { "show", "explain", "check", "set", NULL };

/* In the order of the verbs. */
static int (*const verb_runs[])(struct context *context, struct error *err) = { show_only, explain, check,
                                                                                policy_set };

int cli_policy(struct options *options, struct error *err)
{
    struct context context = CONTEXT_NONE;
    size_t verb = 0;

    while (verb + 1 < ARRAY_LEN(verb_runs) && strcmp(policy_verbs[verb], options->verb) != 0)
        verb++;
    context.options = options_take(options);

    int result = verb_runs[verb](&context, err);

    context_free(&context);
    return result;
}
