#include "cli/policy.h"

#include "base/array.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "cli/policy_explain.h"
#include "cli/say.h"
#include "spec/file.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

const struct option_row options_of_policy[] = {
    { .name = "json", .help = "Print JSON", .type = OPTION_BOOL, .at = offsetof(struct run_options, json) },
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

static int check_file(const struct context *context, const char *path)
{
    static const char *const whose[] = { [LAYER_ADMIN] = "the administrator's",
                                         [LAYER_OWNER] = "the owner's",
                                         [LAYER_REPOSITORY] = "the repository's" };
    autotext struct text bytes = TEXT_NONE, shown = TEXT_NONE;
    enum layer_kind kind = kind_of(path);
    struct error err = { 0 };

    text_add_inert(&shown, path);
    if (file_read_named(path, &bytes, &err) < 0 ||
        spec_check_policy(text_string(&bytes), bytes.len, path, kind, context->host.home, &err) < 0) {
        (void)say_error(&err);
        return 1;
    }
    printf("%s: can be read as %s\n", text_string(&shown), whose[kind]);
    return 0;
}

static int check(struct context *context, struct error *err)
{
    const struct strings *files = &context->options.words;
    int result = 0;

    if (!files->len)
        return error_set(err, ERROR_INVALID, "say which file: cove policy check FILE");
    if (host_read(&context->host, err) < 0)
        return -1;
    for (size_t i = 0; i < files->len; i++)
        result |= check_file(context, files->items[i]);
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
                         "`cove policy` has no verb `%.60s`; there are show, explain and check",
                         words->items[0]);
    return show(context, err);
}

const char *const policy_verbs[] = { "show", "explain", "check", NULL };

/* In the order of the verbs. */
static int (*const verb_runs[])(struct context *context, struct error *err) = { show_only, explain, check };

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
