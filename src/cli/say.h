#pragma once

#include "spec/spec.h"

#include <stdbool.h>

struct command;
struct error;

/* The one place where the program speaks to a person.  Data goes to stdout, these to stderr. */

enum { EXIT_OWN_ERROR = 125 };

/* Prints "cove: what failed", inert, and returns the exit code for it. */
int say_error(const struct error *err);
void say_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));
void say_note(const char *format, ...) __attribute__((format(printf, 1, 2))); /* what is worth a line */
void say_help(const struct command *command);

/* Anything but y is no, and so is what was typed before it was asked; without a terminal there is nobody
 * to ask, and it is no. */
bool say_ask(const char *question);

/* One of the small letters of `answers`; the big one, made small, for anything else and if nobody is there.  A
 * `?` among them shows `help` and asks again. */
char say_choose(const char *question, const char *answers, const char *help);

/* Whether the command gets a terminal: asked for, or stdin and stdout both are one. */
bool say_wants_terminal(enum terminal wish);
