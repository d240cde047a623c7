#pragma once

#include "cli/options.h"

#include <stdbool.h>
#include <stddef.h>

/* One command of the program.  Dispatch, help, man pages, reference and completion come from the
 * table of these; whoever adds a command adds a row. */
struct command {
    const char *name;
    const char *summary;     /* one line, for `cove help` */
    const char *usage;       /* what stands behind "cove NAME", such as "[OPTIONS] [--] [COMMAND [ARG...]]" */
    const char *description; /* paragraphs, an empty line between them; NULL: the summary is enough */
    const struct option_row *rows; /* its own options, ended by a row without a name; may be NULL */
    bool spec;                     /* takes the flags of the fields table too */
    bool hidden;                   /* not in help and completion */

    /* argv[0] is the command's name.  Returns the exit code. */
    int (*run)(const struct command *command, int argc, char **argv);
};

/* Defined beside main(). */
extern const struct command commands[];
extern const size_t commands_len;

/* NULL if there is none of this name. */
const struct command *command_find(const char *name);

/* The name of the command that was probably meant, or NULL. */
const char *command_suggest(const char *name);
