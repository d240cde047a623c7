#pragma once

/* Names as the least careful file system of any owner reads them.  A tree that is written on Linux
 * is checked out on macOS and Windows too, where `.GIT`, `.git.`, `.git::$INDEX_ALLOCATION`,
 * `git~1` and a `.git` with an invisible character in it all are `.git`. */

#include <stdbool.h>
#include <stddef.h>

enum { PLAINNAME_MAX = 4096 };

/* A path without any such difference: small letters, one slash between two components, none at the
 * ends.  Terminated by NUL. */
struct plainname {
    char text[PLAINNAME_MAX];
    size_t len, last; /* length, and where the last component begins */
    bool has_short;   /* there is a tilde in it, as in the short names of Windows */
};

void plainname_clear(struct plainname *name);

/* Adds the components of a path; `.` and `..` are resolved by the text alone.  False if there is
 * no room, or a NUL in it; `name` is then of no use. */
bool plainname_add(struct plainname *name, const char *path, size_t len);

enum plainname_place {
    PLAINNAME_NO,
    PLAINNAME_ABOVE, /* a directory in which something could match */
    PLAINNAME_YES,
};

/* Compares a pattern with the end of a path, at any depth: `a/b` is like `x/a/b`.  Components are
 * patterns as in base/glob.h, in small letters.  One that ends with a slash takes everything below
 * that directory. */
enum plainname_place plainname_compare(const char *pattern, const struct plainname *name);
