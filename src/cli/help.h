#pragma once

struct command;
struct text;

/* `cove help`: what the program is and its commands. */
void help_program(struct text *out);

/* `cove NAME --help`. */
void help_command(const struct command *command, struct text *out);

/* Man pages in scdoc's language: cove(1) if `command` is NULL, else cove-NAME(1). */
void help_man(const struct command *command, struct text *out);

/* docs/reference.md: every command, option and key of the policy file. */
void help_reference(struct text *out);

/* `cove help [COMMAND]` and the hidden `cove docs reference | man [COMMAND]`, which writes what
 * stands in docs/; both have the signature of command.run. */
int help_main(const struct command *command, int argc, char **argv);
int docs_main(const struct command *command, int argc, char **argv);
