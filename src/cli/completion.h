#pragma once

struct command;
struct error;
struct text;

/* The completion script for `shell`: bash, zsh or fish. */
int completion_write(const char *shell, struct text *out, struct error *err);

/* `cove completion SHELL`, with the signature of command.run. */
int completion_main(const struct command *command, int argc, char **argv);
