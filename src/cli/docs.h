#pragma once

struct command;
struct error;
struct options;
struct text;

/* Man pages in scdoc's language: cove(1) if `command` is NULL, else cove-NAME(1). */
void docs_man(const struct command *command, struct text *out);

/* cove-policy(5): the policy file. */
void docs_man_policy(struct text *out);

/* docs/reference.md: every command, option and key of the policy file. */
void docs_reference(struct text *out);

/* The hidden `cove docs reference | man [COMMAND] | man-policy | commands`, which writes what
 * stands in docs/ (tools/gen-docs); with the signature of command.run. */
int docs_main(struct options *options, struct error *err);
