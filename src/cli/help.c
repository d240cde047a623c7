#include "cli/help.h"

#include "base/text.h"
#include "cli/commands.h"

#include <stdio.h>
#include <string.h>

enum { WIDTH = 79, OPTION_COLUMN = 26 };

static const char introduction[] = "cove runs a command, such as a coding agent, in a sandbox of its own.";

/* Adds `string`, whose first line begins at column `column`, broken between words so that no line
 * passes WIDTH; further lines begin at `indent`. */
static void add_wrapped(struct text *out, const char *string, size_t column, size_t indent)
{
    bool first = true;

    while (*string) {
        size_t len = strcspn(string, " \n");

        if (!first && column + 1 + len > WIDTH) {
            text_addf(out, "\n%*s", (int)indent, "");
            column = indent;
        } else if (!first) {
            text_add(out, " ");
            column++;
        }
        text_add_bytes(out, string, len);
        column += len;
        first = false;
        if (text_starts(string + len, "\n\n")) {
            text_add(out, "\n\n");
            column = 0;
            first = true;
        }
        string += len;
        string += strspn(string, " \n");
    }
    text_add(out, "\n");
}

/* The sentence about an option, with its choices and its default. */
static void add_sentence(struct text *out, const struct option *option)
{
    text_add(out, option->help);
    if (option->choices) {
        text_addf(out, "; %s is one of ", option->argument);
        for (size_t i = 0; option->choices[i]; i++)
            text_addf(out, "%s%s", i ? ", " : "", option->choices[i]);
    }
    if (option->argument && option->field && option->field->initial &&
        strcmp(option->field->initial, "none") != 0 && strcmp(option->field->initial, ".") != 0)
        text_addf(out, " (default: %s)", option->field->initial);
}

static void add_option(struct text *out, const struct option *option)
{
    autotext struct text left = TEXT_NONE, sentence = TEXT_NONE;

    if (option->letter)
        text_addf(&left, "  -%c, --%s", option->letter, option->name);
    else
        text_addf(&left, "      --%s", option->name);
    if (option->argument)
        text_addf(&left, " %s", option->argument);
    add_sentence(&sentence, option);
    text_add(out, text_string(&left));
    if (left.len + 2 > OPTION_COLUMN)
        text_addf(out, "\n%*s", OPTION_COLUMN, "");
    else
        text_addf(out, "%*s", (int)(OPTION_COLUMN - left.len), "");
    add_wrapped(out, text_string(&sentence), OPTION_COLUMN, OPTION_COLUMN);
}

void help_program(struct text *out)
{
    text_addf(out, "%s\n\nUsage: cove COMMAND [OPTIONS] ...\n\nCommands:\n", introduction);
    for (size_t i = 0; i < commands_len; i++)
        if (!commands[i].hidden)
            text_addf(out, "  %-12s  %s\n", commands[i].name, commands[i].summary);
    text_add(out, "\n`cove COMMAND --help` says more about one of them.\n");
}

void help_command(const struct command *command, struct text *out)
{
    struct option option;

    text_addf(out, "Usage: cove %s %s\n\n", command->name, command->usage);
    add_wrapped(out, command->description ? command->description : command->summary, 0, 0);
    text_add(out, "\nOptions:\n");
    for (size_t i = 0; option_at(command, i, &option); i++)
        add_option(out, &option);
}

int help_main(struct options *options, struct error *err)
{
    const char *name = options->words.len ? options->words.items[0] : NULL;
    const struct command *about = name ? command_find(name) : NULL;
    autotext struct text text = TEXT_NONE;

    if (name && !about)
        return command_unknown(name, err);
    if (about)
        help_command(about, &text);
    else
        help_program(&text);
    fputs(text_string(&text), stdout);
    return 0;
}
