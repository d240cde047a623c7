#pragma once

#include "cli/options.h"

#include <stdbool.h>
#include <stddef.h>

struct error;

/* One command of the program.  Dispatch, help, man pages, reference and completion come from the
 * table of these; whoever adds a command adds a row. */
struct command {
    const char *name;
    const char *summary;     /* one line, for `cove help` */
    const char *usage;       /* what stands behind "cove NAME", such as "[OPTIONS] [--] [COMMAND [ARG...]]" */
    const char *description; /* paragraphs, an empty line between them; NULL: the summary is enough */
    const struct option_row *rows; /* its own options, ended by a row without a name; may be NULL */
    const char *const *verbs;      /* one of them may stand before the options, the first if none does; ends
                                    * with NULL; may be NULL */
    bool spec;                     /* takes the flags of the fields table too */
    size_t line;                   /* so many words, and then a command line of its own; 0: none */
    bool hidden;                   /* not in help and completion */

    /* May take what it wants of the options.  Returns the exit code, or -1 with `err`: 125. */
    int (*run)(struct options *options, struct error *err);
};

/* Defined beside main(). */
extern const struct command commands[];
extern const size_t commands_len;

/* Reads its options and runs it, or prints its help; argv[0] is its name.  The exit code, or -1. */
int command_run(const struct command *command, int argc, char **argv, struct error *err);

/* NULL if there is none of this name. */
const struct command *command_find(const char *name);

/* That there is none of this name, and which one was probably meant; returns -1. */
int command_unknown(const char *name, struct error *err);
