/* Man pages and reference, from the same tables as the parsers. */

#include "cli/docs.h"

#include "base/array.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "spec/values.h"

#include <stdio.h>
#include <string.h>

/* Words for the columns of the fields table. */

static const char *type_name(const struct field *field)
{
    static const char *const names[] = {
        [TYPE_BOOL] = "true or false", [TYPE_CHOICE] = "a word",   [TYPE_DURATION] = "a duration",
        [TYPE_STRING] = "text",        [TYPE_STRINGS] = "a list",  [TYPE_ENV] = "a mapping or a list",
        [TYPE_VOLUMES] = "a list",     [TYPE_RULES] = "a list",    [TYPE_BYTES] = "a size",
        [TYPE_NUMBER] = "a number",    [TYPE_SERVICES] = "a list", [TYPE_CPUS] = "a number",
    };

    return names[field->type];
}

static const char *combine_name(const struct field *field)
{
    static const char *const names[] = {
        [COMBINE_OWNER] = "only the owner says it",
        [COMBINE_AND] = "false as soon as one layer says so",
        [COMBINE_SMALLER] = "the smallest",
        [COMBINE_STRICTER] = "the strictest",
        [COMBINE_UNION] = "all of them together",
        [COMBINE_GRANT] = "what lies in all of them",
        [COMBINE_NETWORK] = "what all of them allow and none denies",
        [COMBINE_IMAGE] = "must be among `images` of every layer that says them",
        [COMBINE_IMAGES] = "`image` must be among those of every layer that says them",
    };

    return names[field->combine];
}

static void add_places(const struct field *field, struct text *out)
{
    static const struct {
        unsigned place;
        const char *name;
    } places[] = { { PLACE_ADMIN, "administrator" },
                   { PLACE_OWNER, "owner" },
                   { PLACE_REPOSITORY, "repository" } };
    const char *between = "";

    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        if (!(field->places & places[i].place))
            continue;
        text_addf(out, "%s%s", between, places[i].name);
        between = ", ";
    }
}

static bool is_policy_key(const struct field *field)
{
    return field->places & (PLACE_ADMIN | PLACE_OWNER | PLACE_REPOSITORY);
}

/* Man pages */

/* Puts a backslash before what scdoc would take as markup. */
static void add_scdoc(struct text *out, const char *string)
{
    for (; *string; string++) {
        if (strchr("\\*_#[]|`<>", *string))
            text_add(out, "\\");
        text_add_bytes(out, string, 1);
    }
}

static void add_man_option(struct text *out, const struct option *option)
{
    if (option->letter)
        text_addf(out, "*-%c*, ", option->letter);
    text_addf(out, "*--%s*", option->name);
    if (option->argument) {
        text_add(out, " ");
        add_scdoc(out, option->argument);
    }
    text_add(out, "\n\t");
    add_scdoc(out, option->help);
    text_add(out, ".");
    if (option->choices) {
        text_addf(out, " %s is one of ", option->argument);
        for (size_t i = 0; option->choices[i]; i++)
            text_addf(out, "%s*%s*", i ? ", " : "", option->choices[i]);
        text_add(out, ".");
    }
    if (option->field && option->field->places & PLACE_OWNER)
        text_addf(out, " In a policy file: *%s*.", option->field->key);
    text_add(out, "\n\n");
}

static void add_man_end(struct text *out, const struct command *self)
{
    text_add(out, "# SEE ALSO\n\n");
    text_add(out, self ? "*cove*(1)" : "");
    for (size_t i = 0, shown = self != NULL; i < commands_len; i++) {
        if (commands[i].hidden || &commands[i] == self)
            continue;
        text_addf(out, "%s*cove-%s*(1)", shown++ ? ", " : "", commands[i].name);
    }
    text_add(out, ", *cove-policy*(5)\n");
}

static void add_man_command(const struct command *command, struct text *out)
{
    struct option option;

    text_addf(out, "cove-%s(1)\n\n# NAME\n\ncove-%s - ", command->name, command->name);
    add_scdoc(out, command->summary);
    text_addf(out, "\n\n# SYNOPSIS\n\n*cove %s* ", command->name);
    add_scdoc(out, command->usage);
    text_add(out, "\n\n# DESCRIPTION\n\n");
    add_scdoc(out, command->description ? command->description : command->summary);
    text_add(out, "\n\n# OPTIONS\n\n");
    for (size_t i = 0; option_at(command, i, &option); i++)
        add_man_option(out, &option);
    add_man_end(out, command);
}

static void add_man_program(struct text *out)
{
    text_add(
        out,
        "cove(1)\n\n# NAME\n\ncove - a sandbox for coding agents\n\n# SYNOPSIS\n\n"
        "*cove* COMMAND \\[OPTIONS\\] ...\n\n# DESCRIPTION\n\n"
        "Runs a command, such as a coding agent, in a sandbox of its own, out of which nothing comes except "
        "what its owner lets out.\n\n# COMMANDS\n\n");
    for (size_t i = 0; i < commands_len; i++) {
        if (commands[i].hidden)
            continue;
        text_addf(out, "*cove-%s*(1)\n\t", commands[i].name);
        add_scdoc(out, commands[i].summary);
        text_add(out, "\n\n");
    }
    text_add(
        out,
        "# EXIT STATUS\n\nThat of the command. *124* if it ran out of time, *125* if cove itself failed, "
        "*126* if the command could not be run, *127* if it was not found, *128+N* if signal N ended it.\n\n"
        "# FILES\n\n" SPEC_ADMIN_FILE "\n\t"
        "The administrator's policy.\n\n"
        "~/.config/cove/policy.yaml\n\t"
        "The owner's policy.\n\n" SPEC_REPOSITORY_FILE "\n\t"
        "In a work tree: what the repository wants less of, and what it wishes "
        "for.\n\n");
    add_man_end(out, NULL);
}

void docs_man(const struct command *command, struct text *out)
{
    if (command)
        add_man_command(command, out);
    else
        add_man_program(out);
}

/* Paragraphs about the layers, shared by cove-policy(5) and the reference; plain in both languages. */
static const char *const layers_text[] = {
    "Three layers have a say, and each can only narrow the one before. The administrator's "
    "file, " SPEC_ADMIN_FILE
    ", is a ceiling and grants nothing by itself. The owner's layer is ~/.config/cove/policy.yaml (or below "
    "$XDG\\_CONFIG\\_HOME), files named by --policy, and flags: later ones override, lists add up. The "
    "repository's is "
    "the mapping policy in the file " SPEC_REPOSITORY_FILE " at the root of the work tree.",
    "What the owner asks for on the command line above the ceiling is refused, and the message names both "
    "places. What "
    "the owner's own file says above it is cut. What the repository says above the owner's has no effect. A "
    "layer that "
    "does not exist restricts nothing; one that cannot be read whole stops the start.",
    "The administrator's file and its directory must belong to root and be writable for nobody else; the "
    "owner's must "
    "belong to the owner or root. None of them may be a symbolic link. An unknown key, a key that is there "
    "twice, an "
    "anchor, an alias or a tag is an error. Paths are absolute or begin with ~/; "
    "those of ca and file in a rule may also be relative to the directory of the policy file.",
    "files.read, files.write and volumes are three ways to the host's files, so a ceiling on one holds for the "
    "others: "
    "what files.read of a layer leaves out is not visible by the others, what files.write leaves out is not "
    "writable "
    "by volumes.",
};

void docs_man_policy(struct text *out)
{
    text_add(out,
             "cove-policy(5)\n\n# NAME\n\ncove-policy - what a sandbox may see and do\n\n# DESCRIPTION\n\n");
    for (size_t i = 0; i < ARRAY_LEN(layers_text); i++)
        text_addf(out, "%s\n\n", layers_text[i]);
    text_add(out,
             "# KEYS\n\nA dot goes one mapping deeper: files.read is the key read in the mapping files.\n\n");
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        autotext struct text extra = TEXT_NONE;

        if (!is_policy_key(&fields[i]))
            continue;
        text_addf(out, "*%s*\n\t", fields[i].key);
        text_addf(&extra, "%s (%s", fields[i].help, type_name(&fields[i]));
        if (fields[i].type == TYPE_CHOICE) {
            text_add(&extra, ": ");
            value_choices(&fields[i], &extra);
        }
        if (fields[i].initial)
            text_addf(&extra, "; default: %s", fields[i].initial);
        text_add(&extra, "). Said by: ");
        add_places(&fields[i], &extra);
        text_addf(&extra, ". Of several layers: %s.", combine_name(&fields[i]));
        add_scdoc(out, text_string(&extra));
        text_add(out, "\n\n");
    }
    text_add(out, "# EXAMPLE\n\n```\nlimits: { timeout: 30m, memory: 4G, processes: 512 }\nfiles:\n  read: "
                  "[~/.config/tool.conf]\n"
                  "  hide: [.env, \"*.pem\"]\nvolumes:\n  - ~/data:/data:ro\nenv: { CI: \"1\" }\n```\n\n");
    text_add(out, "# SEE ALSO\n\n*cove*(1), *cove-run*(1)\n");
}

/* Reference */

/* One cell of a table. */
static void add_cell(struct text *out, const char *string)
{
    for (; *string; string++) {
        if (strchr("|<", *string) || (*string == '\\' && string[1] != '_'))
            text_add(out, "\\");
        text_add_bytes(out, string, 1);
    }
}

static void add_reference_option(struct text *out, const struct option *option)
{
    text_add(out, "| ");
    if (option->letter)
        text_addf(out, "`-%c` ", option->letter);
    text_addf(out, "`--%s", option->name);
    if (option->argument) {
        text_add(out, " ");
        for (const char *at = option->argument; *at; at++)
            text_addf(out, *at == '|' ? "\\%c" : "%c", *at);
    }
    text_add(out, "` | ");
    add_cell(out, option->help);
    if (option->choices) {
        text_add(out, ": ");
        for (size_t i = 0; option->choices[i]; i++)
            text_addf(out, "%s`%s`", i ? ", " : "", option->choices[i]);
    }
    text_add(out, " | ");
    if (option->field && option->field->places & PLACE_OWNER)
        text_addf(out, "`%s`", option->field->key);
    text_add(out, " |\n");
}

static void add_reference_command(struct text *out, const struct command *command)
{
    struct option option;

    text_addf(out, "\n## cove %s\n\n    cove %s %s\n\n%s\n\n", command->name, command->name, command->usage,
              command->description ? command->description : command->summary);
    text_add(out, "| option | what it does | key in a policy file |\n|---|---|---|\n");
    for (size_t i = 0; option_at(command, i, &option); i++)
        add_reference_option(out, &option);
}

static void add_reference_key(struct text *out, const struct field *field)
{
    text_addf(out, "| `%s` | ", field->key);
    add_cell(out, field->help);
    text_addf(out, " | %s", type_name(field));
    if (field->type == TYPE_CHOICE) {
        text_add(out, ": ");
        value_choices(field, out);
    }
    text_addf(out, " | %s | ", field->initial ? field->initial : "");
    add_places(field, out);
    text_addf(out, " | %s |\n", combine_name(field));
}

void docs_reference(struct text *out)
{
    text_add(out,
             "# Reference\n\nMade from the tables of the program by `tools/gen-docs`; a test compares them.\n");
    for (size_t i = 0; i < commands_len; i++)
        if (!commands[i].hidden)
            add_reference_command(out, &commands[i]);
    text_add(out, "\n## Policy files\n\n");
    for (size_t i = 0; i < ARRAY_LEN(layers_text); i++)
        text_addf(out, "%s\n\n", layers_text[i]);
    text_add(out, "| key | what it is | type | default | who may say it | of several layers |\n"
                  "|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < FIELD_COUNT; i++)
        if (is_policy_key(&fields[i]))
            add_reference_key(out, &fields[i]);
}

/* The hidden command */

static int write_one(const char *what, const char *about, struct text *out, struct error *err)
{
    const struct command *command = about ? command_find(about) : NULL;

    if (about && !command)
        return error_set(err, ERROR_INVALID, "there is no command `%.60s`", about);
    if (strcmp(what, "reference") == 0)
        docs_reference(out);
    else if (strcmp(what, "man") == 0)
        docs_man(command, out);
    else if (strcmp(what, "man-policy") == 0)
        docs_man_policy(out);
    else if (strcmp(what, "commands") == 0)
        for (size_t i = 0; i < commands_len; i++)
            text_addf(out, "%s%s", commands[i].hidden ? "" : commands[i].name, commands[i].hidden ? "" : "\n");
    else
        return error_set(err, ERROR_INVALID,
                         "`cove docs` has reference, man [COMMAND], man-policy and commands");
    return 0;
}

int docs_main(struct options *options, struct error *err)
{
    const struct strings *words = &options->words;
    autotext struct text text = TEXT_NONE;

    if (write_one(words->len ? words->items[0] : "", words->len > 1 ? words->items[1] : NULL, &text, err) < 0)
        return -1;
    fputs(text_string(&text), stdout);
    return 0;
}
