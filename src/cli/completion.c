/* Completion scripts.  Each is complete in itself: no call of cove while the user types, so a
 * hostile directory has nothing to say in it. */

#include "cli/completion.h"

#include "base/array.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"

#include <stdio.h>
#include <string.h>

static bool takes_path(const struct option *option)
{
    static const char *const names[] = { "FILE", "DIR", "PATH", "DIR|host", "SRC:DST[:ro|cow]" };

    for (size_t i = 0; option->argument && i < ARRAY_LEN(names); i++)
        if (strcmp(option->argument, names[i]) == 0)
            return true;
    return false;
}

/* In single quotes for a shell. */
static void add_quoted(struct text *out, const char *string, const char *escape)
{
    text_add(out, "'");
    for (; *string; string++) {
        if (*string == '\'') {
            text_add(out, "'\\''");
            continue;
        }
        if (strchr(escape, *string))
            text_add(out, "\\");
        text_add_bytes(out, string, 1);
    }
    text_add(out, "'");
}

static void add_choices(struct text *out, const struct option *option)
{
    for (size_t i = 0; option->choices[i]; i++)
        text_addf(out, "%s%s", i ? " " : "", option->choices[i]);
}

/* What may stand right behind the command's name: its verbs, a shell, a command to be helped with. */
static bool add_first_words(const struct command *command, struct text *out)
{
    bool helps = strcmp(command->name, "help") == 0;

    if (strcmp(command->name, "completion") == 0)
        text_add(out, "bash zsh fish");
    for (size_t i = 0; command->verbs && command->verbs[i]; i++)
        text_addf(out, "%s%s", i ? " " : "", command->verbs[i]);
    for (size_t i = 0; helps && i < commands_len; i++)
        if (!commands[i].hidden)
            text_addf(out, "%s%s", i ? " " : "", commands[i].name);
    return command->verbs || helps || strcmp(command->name, "completion") == 0;
}

/* bash */

/* Lists of words by the last word: what may follow an option that takes a value. */
static void bash_values(const struct command *command, struct text *out)
{
    struct option option;

    for (size_t i = 0; option_at(command, i, &option); i++) {
        if (!option.argument)
            continue;
        text_addf(out, "    %s:--%s", command->name, option.name);
        if (option.letter)
            text_addf(out, "|%s:-%c", command->name, option.letter);
        if (option.choices) {
            text_add(out, ") COMPREPLY=($(compgen -W '");
            add_choices(out, &option);
            text_add(out, "' -- \"$word\")); return ;;\n");
        } else {
            text_add(out, takes_path(&option) ? ") COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n"
                                              : ") return ;;\n");
        }
    }
}

static void bash_options(const struct command *command, struct text *out)
{
    struct option option;

    text_addf(out, "    %s) options='", command->name);
    for (size_t i = 0; option_at(command, i, &option); i++) {
        text_addf(out, "%s--%s", i ? " " : "", option.name);
        if (option.letter)
            text_addf(out, " -%c", option.letter);
    }
    text_add(out, "' ;;\n");
}

static void bash_first_words(const struct command *command, struct text *out)
{
    autotext struct text words = TEXT_NONE;

    if (add_first_words(command, &words))
        text_addf(out, "    %s:2:*) COMPREPLY=($(compgen -W '%s' -- \"$word\")) ;;\n", command->name,
                  words.data);
}

static void bash_write(struct text *out)
{
    text_add(out, "_cove()\n{\n    local word=$2 before=$3 command=${COMP_WORDS[1]} options=\n\n"
                  "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        COMPREPLY=($(compgen -W '");
    for (size_t i = 0; i < commands_len; i++)
        if (!commands[i].hidden)
            text_addf(out, "%s%s", i ? " " : "", commands[i].name);
    text_add(out, "' -- \"$word\"))\n        return\n    fi\n"
                  "    local at\n    for ((at = 2; at < COMP_CWORD; at++)); do\n"
                  "        [ \"${COMP_WORDS[at]}\" = -- ] || continue\n"
                  "        [ $((at + 1)) -ne \"$COMP_CWORD\" ] || COMPREPLY=($(compgen -c -- \"$word\"))\n"
                  "        return 0\n    done\n"
                  "    case $command:$before in\n");
    for (size_t i = 0; i < commands_len; i++)
        if (!commands[i].hidden)
            bash_values(&commands[i], out);
    text_add(out, "    esac\n    case $command in\n");
    for (size_t i = 0; i < commands_len; i++)
        if (!commands[i].hidden)
            bash_options(&commands[i], out);
    text_add(out, "    esac\n    case $command:$COMP_CWORD:$word in\n"
                  "    *:-*) COMPREPLY=($(compgen -W \"$options\" -- \"$word\")) ;;\n");
    for (size_t i = 0; i < commands_len; i++)
        bash_first_words(&commands[i], out);
    text_add(out, "    run:*) COMPREPLY=($(compgen -c -- \"$word\")) ;;\n"
                  "    esac\n}\ncomplete -o default -F _cove cove\n");
}

/* zsh */

static void zsh_value(const struct option *option, struct text *out)
{
    if (!option->argument)
        return;
    text_add(out, "':value:");
    if (option->choices) {
        text_add(out, "(");
        add_choices(out, option);
        text_add(out, ")");
    } else if (takes_path(option)) {
        text_add(out, "_files");
    }
    text_add(out, "'");
}

static void zsh_option(const struct option *option, struct text *out)
{
    for (int form = option->letter ? 0 : 1; form < 2; form++) {
        if (form == 0)
            text_addf(out, "        '*-%c'", option->letter);
        else
            text_addf(out, "        '*--%s%s'", option->name, option->argument ? "=" : "");
        text_add(out, "'['");
        add_quoted(out, option->help, "[]:\\"); /* ] and : would end it */
        text_add(out, "']'");
        zsh_value(option, out);
        text_add(out, " \\\n");
    }
}

/* What stands behind the options: a command line after so many words of our own, or our own words. */
static void zsh_words(const struct command *command, struct text *out)
{
    autotext struct text words = TEXT_NONE;

    if (add_first_words(command, &words))
        text_addf(out, "        '1:word:(%s)' '*:file:_files' ;;\n", words.data);
    else if (command->spec)
        text_add(out, "        '*::command:_normal' ;;\n");
    else
        text_add(out, "        '*:: :' ;;\n");
}

static void zsh_write(struct text *out)
{
    text_add(out, "#compdef cove\n\n_cove()\n{\n    local -a names\n    names=(\n");
    for (size_t i = 0; i < commands_len; i++) {
        if (commands[i].hidden)
            continue;
        text_addf(out, "        %s':'", commands[i].name);
        add_quoted(out, commands[i].summary, ":\\");
        text_add(out, "\n");
    }
    text_add(out,
             "    )\n    if (( CURRENT == 2 )); then\n        _describe command names\n        return\n    fi\n"
             "    local name=$words[2]\n    shift words\n    (( CURRENT-- ))\n    case $name in\n");
    for (size_t i = 0; i < commands_len; i++) {
        struct option option;

        if (commands[i].hidden)
            continue;
        text_addf(out, "    %s) _arguments -s -A '-*' \\\n", commands[i].name);
        for (size_t j = 0; option_at(&commands[i], j, &option); j++)
            zsh_option(&option, out);
        zsh_words(&commands[i], out);
    }
    text_add(out, "    esac\n}\n\n_cove \"$@\"\n");
}

/* fish */

static void fish_option(const struct command *command, const struct option *option, struct text *out)
{
    text_addf(out, "complete -c cove -n '__fish_seen_subcommand_from %s' -l %s", command->name, option->name);
    if (option->letter)
        text_addf(out, " -s %c", option->letter);
    text_add(out, " -d ");
    add_quoted(out, option->help, "\\");
    if (option->choices) {
        text_add(out, " -x -a '");
        add_choices(out, option);
        text_add(out, "'");
    } else if (option->argument) {
        text_add(out, takes_path(option) ? " -r -F" : " -x");
    }
    text_add(out, "\n");
}

static void fish_first_words(const struct command *command, struct text *out)
{
    autotext struct text words = TEXT_NONE;

    if (add_first_words(command, &words))
        text_addf(out, "complete -c cove -n '__fish_seen_subcommand_from %s' -f -a '%s'\n", command->name,
                  words.data);
}

static void fish_write(struct text *out)
{
    for (size_t i = 0; i < commands_len; i++) {
        struct option option;

        if (commands[i].hidden)
            continue;
        text_addf(out, "complete -c cove -n __fish_use_subcommand -f -a %s -d ", commands[i].name);
        add_quoted(out, commands[i].summary, "\\");
        text_add(out, "\n");
        for (size_t j = 0; option_at(&commands[i], j, &option); j++)
            fish_option(&commands[i], &option, out);
        fish_first_words(&commands[i], out);
    }
    text_add(out, "complete -c cove -n '__fish_seen_subcommand_from run' -f -a '(__fish_complete_command)'\n");
}

static const struct shell {
    const char *name;
    void (*write)(struct text *out);
} shells[] = { { "bash", bash_write }, { "zsh", zsh_write }, { "fish", fish_write } };

int completion_write(const char *shell, struct text *out, struct error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(shells); i++) {
        if (strcmp(shell, shells[i].name) != 0)
            continue;
        shells[i].write(out);
        return 0;
    }
    return error_set(err, ERROR_INVALID, "there is completion for bash, zsh and fish, not for `%.60s`", shell);
}

int completion_main(struct options *options, struct error *err)
{
    autotext struct text text = TEXT_NONE;

    if (options->words.len != 1)
        return error_set(err, ERROR_INVALID, "cove completion needs one word: bash, zsh or fish");
    if (completion_write(options->words.items[0], &text, err) < 0)
        return -1;
    fputs(text_string(&text), stdout);
    return 0;
}
