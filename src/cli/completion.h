#pragma once

struct error;
struct options;
struct text;

/* The completion script for `shell`: bash, zsh or fish. */
int completion_write(const char *shell, struct text *out, struct error *err);

/* `cove completion SHELL`, with the signature of command.run. */
int completion_main(struct options *options, struct error *err);
