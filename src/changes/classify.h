#pragma once

/* Which changes of a work tree can run something on the owner's machine, and which part of a
 * changed file it is that does.  Pure: nothing is opened, and no content is believed to be what its
 * name says.  What is listed, and why, is the table in watchlist.c. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum classify_class {
    CLASSIFY_ORDINARY,
    CLASSIFY_BUILD,   /* class B: runs when the owner builds, tests, commits or starts it */
    CLASSIFY_AUTORUN, /* class A: runs or steers a tool merely by being there */
};

/* A file before or after the change. */
struct classify_side {
    mode_t mode;       /* as st_mode, with the kind of file; 0: there is none */
    const char *bytes; /* the content, of a link its target; NULL: not known, then `cut` is set */
    size_t len;
    bool cut; /* there is more than `bytes`: then it counts as changed */
};

/* After a rename give the new path, with `old` empty: what was ordinary at one place need not be
 * so at another. */
struct classify_input {
    const char *path; /* relative to the top of the tree, any bytes */
    size_t path_len;
    const char *in_bare; /* points at that part of `path` that lies below a bare repository; or NULL */
    struct classify_side old, new;
};

enum { CLASSIFY_PART_MAX = 96 };

struct classify_verdict {
    enum classify_class class;
    const char *reason;           /* "git runs it"; constant; "" if ordinary */
    char part[CLASSIFY_PART_MAX]; /* "scripts.test changed", printable ASCII; "": the whole file */
};

/* Where a link leads to is looked at too, without following anything.  That a link leads out of
 * the tree is not this function's subject. */
void classify(const struct classify_input *in, struct classify_verdict *out);

enum { CLASSIFY_TELLING = 4 };
extern const char
    *const classify_telling[CLASSIFY_TELLING]; /* of a directory: what makes git take it for a repository */

/* Whether git would take a directory with these names for a repository, so that a `config` and
 * `hooks` in it come alive.  In what lies below, `in_bare` is then to be set. */
bool classify_bare_repository(const char *const *names, size_t len);

const char *classify_name(enum classify_class class); /* "ordinary", "build", "autorun" */
