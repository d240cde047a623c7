#pragma once

/* git's own files in a work tree: what lies below a directory called .git, and .git itself.  They never
 * come home as files.  Commits do (commits.h); the rest is told. */

struct change;

enum git_own {
    GIT_NOT_OWN,
    GIT_OWN_STATE,  /* what git writes by itself at every step: objects, references, index, logs */
    GIT_OWN_STEERS, /* everything else: configuration, hooks, pointers */
};

/* By where a change is and, if it was renamed, by where it was. */
enum git_own git_own_change(const struct change *change);

/* The same for a path below a git directory. */
enum git_own git_own_below(const char *path);

/* Why a change is refused, and what to do instead: one sentence. */
const char *git_own_reason(const struct change *change);
