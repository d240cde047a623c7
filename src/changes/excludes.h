#pragma once

/* Which paths of a work tree git ignores, by every .gitignore on the way and .git/info/exclude.
 *
 * Whose rules: those of the base are the owner's and may fold a change away; those that the sandbox wrote
 * must not, and are asked only to tell what they would hide.  The owner's own configuration and what lies
 * outside of the work tree are not read: then too much is shown, never too little. */

#include "changes/ignore.h"

struct excludes_level;

/* Of all files together; nobody waits for more than some seconds. */
enum { EXCLUDES_STEPS_MAX = 1 << 29 };

struct excludes {
    int base;
    bool inside; /* the rules that hold inside, from `upper` where it has them; else only the owner's */
    int upper;

    uint64_t steps; /* that rules took, all files together */

    /* Directories around the path that was asked for last, from the outside in. */
    struct excludes_level *items;
    size_t len, cap;
};

struct excludes_answer {
    bool ignored;
    /* Length of the outermost directory in the path that is ignored as a whole; 0: only the path itself. */
    size_t directory;
    bool nested; /* in another repository than the work tree's own */
    /* The rules of `rule` take too long to follow: nothing that they are about counts as ignored. */
    bool too_long;
    char *rule; /* the path of the file with the rule that decided; borrowed until the next question */
};

void excludes_free(struct excludes *excludes);

/* Cheap if asked in the order of the paths.  What lies in a `.git` is never ignored, and where there is no
 * repository nothing is. */
void excludes_ask(struct excludes *excludes, const char *path, bool directory, struct excludes_answer *out);
