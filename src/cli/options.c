#include "cli/options.h"

#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "spec/forms.h"
#include "spec/node.h"
#include "spec/suggest.h"

#include <string.h>

#define RUN_AT(member) .at = offsetof(struct run_options, member)

const struct option_row option_help = { "help", 'h', NULL, "Show this help", OPTION_BOOL, RUN_AT(help) };

const struct option_row options_of_run[] = {
    { "name", 0, "NAME",
      "Name the sandbox, to find it again if it is kept; if there is one of this name, go on in it",
      OPTION_STRING, RUN_AT(name) },
    { "continue", 0, NULL, "Go on in the last sandbox of this work tree, or in that of --name, with its files",
      OPTION_BOOL, RUN_AT(again) },
    { "label", 0, "KEY[=VALUE]", "Label the sandbox; may be given again", OPTION_LIST, RUN_AT(labels) },
    { "summary", 0, NULL, "Tell on standard error what happened, also where that is no terminal", OPTION_BOOL,
      RUN_AT(summary) },
    { "quiet", 'q', NULL, "No summary; say nothing but errors", OPTION_BOOL, RUN_AT(quiet) },
    { "report", 0, "FILE", "Write all that happened to FILE as JSON; - is standard output", OPTION_STRING,
      RUN_AT(report) },
    { "audit-policy", 0, "FILE",
      "With --audit, write the policy that would have allowed exactly what was asked for to the new file FILE",
      OPTION_STRING, RUN_AT(audit_policy) },
    { "explain", 0, NULL,
      "Afterwards list paths, addresses and system calls that were asked for and refused, and what would "
      "grant them (slower)",
      OPTION_BOOL, RUN_AT(explain) },
    { "prove", 0, NULL,
      "First try on this host, with this policy, whether such a sandbox holds (cove prove), and refuse if it "
      "has a "
      "gap",
      OPTION_BOOL, RUN_AT(prove) },
    { "print-plan", 0, NULL, "Show the steps that set the sandbox up, and stop", OPTION_BOOL,
      RUN_AT(print_plan) },
    { "dry-run", 0, NULL,
      "Check policy, paths and image, say whether the sandbox can be set up, and start nothing", OPTION_BOOL,
      RUN_AT(dry_run) },
    { "json", 0, NULL, "With --print-plan or --dry-run: as JSON", OPTION_BOOL, RUN_AT(json) },
    { NULL },
};

void options_free(struct options *options)
{
    spec_request_free(&options->spec);
    strings_free(&options->words);
    strings_free(&options->run.labels);
    strings_free(&options->run.autorun);
    strings_free(&options->run.exclude);
    strings_free(&options->run.env);
    strings_free(&options->run.score_files);
    *options = OPTIONS_NONE;
}

struct options options_take(struct options *options)
{
    struct options taken = *options;

    *options = OPTIONS_NONE;
    return taken;
}

/* The tables as one */

static struct option of_row(const struct option_row *row)
{
    return (struct option){
        .name = row->name, .argument = row->argument, .help = row->help, .letter = row->letter, .row = row
    };
}

static struct option of_flag(const struct flag *flag, const struct field *field)
{
    return (struct option){ .name = flag->name,
                            .argument = flag->argument,
                            .help = flag->help,
                            .choices = field && flag->argument && field->choices[0] ? field->choices : NULL,
                            .letter = flag->letter,
                            .field = field,
                            .flag = flag };
}

/* The flag at place `index`, fields' first, then those of no field. */
static bool spec_flag_at(size_t index, struct option *out)
{
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        for (size_t j = 0; j < FIELD_FLAGS; j++) {
            if (!fields[i].flags[j].name || index--)
                continue;
            *out = of_flag(&fields[i].flags[j], &fields[i]);
            return true;
        }
    }
    if (index >= source_flags_len)
        return false;
    *out = of_flag(&source_flags[index], NULL);
    return true;
}

static size_t spec_flag_count(void)
{
    static size_t count; /* 0: not counted yet */
    struct option ignored;

    if (count == 0)
        while (spec_flag_at(count, &ignored))
            count++;
    return count;
}

bool option_at(const struct command *command, size_t index, struct option *out)
{
    size_t spec_flags = command->spec ? spec_flag_count() : 0, rows = 0;

    if (index < spec_flags)
        return spec_flag_at(index, out);
    index -= spec_flags;
    while (command->rows && command->rows[rows].name)
        rows++;
    if (index < rows)
        *out = of_row(&command->rows[index]);
    else if (index == rows)
        *out = of_row(&option_help);
    return index <= rows;
}

static bool find_name(const struct command *command, const char *name, size_t len, struct option *out)
{
    for (size_t i = 0; option_at(command, i, out); i++)
        if (strlen(out->name) == len && memcmp(out->name, name, len) == 0)
            return true;
    return false;
}

static bool find_letter(const struct command *command, char letter, struct option *out)
{
    for (size_t i = 0; option_at(command, i, out); i++)
        if (out->letter == letter)
            return true;
    return false;
}

/* Parsing */

/* Where the parser stands. */
struct parsing {
    const struct command *command;
    char **argv;
    int argc, at; /* argv[at] is the next word */
    struct options *out;
    struct error *err;
};

static int unknown_option(const struct parsing *parsing, const char *word)
{
    autotext struct text shown = TEXT_NONE;
    struct suggest near = SUGGEST_NONE;
    struct option option;
    size_t len = strcspn(word, "=");
    char name[64] = "";

    node_show_text(word, &shown);
    error_set(parsing->err, ERROR_INVALID, "%s is no option of cove %s", text_string(&shown),
              parsing->command->name);
    if (text_starts(word, "--") && len - 2 < sizeof name)
        memcpy(name, word + 2, len - 2);
    for (size_t i = 0; *name && option_at(parsing->command, i, &option); i++)
        suggest_offer(&near, name, option.name);
    if (near.best)
        return error_hint(parsing->err, "did you mean --%s?", near.best);
    return error_hint(parsing->err, "cove %s --help lists them", parsing->command->name);
}

static void use(const struct parsing *parsing, const struct option *option, const char *value)
{
    struct options *out = parsing->out;

    if (option->flag) {
        *array_add(&out->spec) = (struct flag_use){ option->flag, option->field, value };
        return;
    }

    void *at = (char *)&out->run + option->row->at;

    switch (option->row->type) {
    case OPTION_BOOL:
        *(bool *)at = true;
        break;
    case OPTION_STRING:
        *(const char **)at = value;
        break;
    case OPTION_LIST:
        strings_add(at, value);
        break;
    }
}

/* `attached` is the value that stood in the same word, or NULL. */
static int use_with_value(struct parsing *parsing, const struct option *option, const char *attached)
{
    if (!option->argument && attached)
        return error_set(parsing->err, ERROR_INVALID, "--%s takes no value", option->name);
    if (option->argument && !attached && parsing->at >= parsing->argc)
        return error_set(parsing->err, ERROR_INVALID, "--%s needs a value: --%s %s", option->name, option->name,
                         option->argument);
    use(parsing, option, option->argument && !attached ? parsing->argv[parsing->at++] : attached);
    return 0;
}

static int parse_long(struct parsing *parsing, const char *word)
{
    struct option option;
    size_t len = strcspn(word + 2, "=");

    if (!find_name(parsing->command, word + 2, len, &option))
        return unknown_option(parsing, word);
    return use_with_value(parsing, &option, word[2 + len] ? word + 3 + len : NULL);
}

/* -it, -eKEY=VALUE, -e KEY=VALUE. */
static int parse_letters(struct parsing *parsing, const char *word)
{
    for (const char *at = word + 1; *at; at++) {
        struct option option;

        if (!find_letter(parsing->command, *at, &option))
            return unknown_option(parsing, word);
        if (option.argument)
            return use_with_value(parsing, &option, at[1] ? at + 1 : NULL);
        use(parsing, &option, NULL);
    }
    return 0;
}

int options_parse(const struct command *command, int argc, char **argv, struct options *out, struct error *err)
{
    struct parsing parsing = { command, argv, argc, 1, out, err };

    *out = (struct options){ .command = command, .argc = argc, .argv = argv };
    while (parsing.at < argc) {
        const char *word = argv[parsing.at];
        bool option = word[0] == '-' && word[1];

        if (!option && (command->spec || (command->line && out->words.len == command->line)))
            break; /* the words are a command line of their own */
        parsing.at++;
        if (!option) {
            strings_add(&out->words, word);
            continue;
        }
        if (strcmp(word, "--") == 0)
            break;
        if ((word[1] == '-' ? parse_long : parse_letters)(&parsing, word) < 0) {
            options_free(out);
            return -1;
        }
    }
    for (int i = parsing.at; i < argc; i++) {
        strings_add(&out->words, argv[i]);
        if (command->spec)
            strings_add(&out->spec.command, argv[i]);
    }
    return 0;
}

int options_duration(const char *name, const char *text, uint64_t *out, struct error *err)
{
    autotext struct text why = TEXT_NONE, shown = TEXT_NONE;

    if (form_duration(text, out, &why))
        return 0;
    node_show_text(text, &shown);
    return error_set(err, ERROR_INVALID, "--%s %s: %s", name, text_string(&shown), text_string(&why));
}

int options_again(const struct options *options, struct options *out, struct error *err)
{
    return options_parse(options->command, options->argc, options->argv, out, err);
}
