#pragma once

/* What git writes when it is asked about commits: bytes of a hostile program, through a git that may be
 * its victim.  Pure: nothing is opened.  Behind the bytes, at `end`, there is a NUL. */

#include "git/refs.h"

#include <sys/types.h>

/* One line of git-diff-tree(1), with -z and --raw.  Of a merge, the first parent's side is the old one. */
struct diff_line {
    mode_t old_mode, new_mode; /* as in st_mode; 0: there is none; a submodule is S_IFDIR */
    char old_hash[HASH_MAX + 1], new_hash[HASH_MAX + 1];
    const char *path; /* within the bytes that were read, never empty */
};

enum answer { ANSWER_END, ANSWER_ONE, ANSWER_NONSENSE };

/* Reads what stands at *at, before `end`, and moves *at behind it.  At the end, and at an empty word,
 * which it passes over, ANSWER_END. */
enum answer answer_diff(const char **at, const char *end, size_t digits, struct diff_line *out);

/* The next word of a list with a NUL behind each; NULL at its end. */
const char *answer_word(const char **at, const char *end);

/* One object of `git cat-file --batch`. */
struct blob {
    char hash[HASH_MAX + 1];
    const char *bytes; /* within the bytes that were read */
    size_t len;
};

enum answer answer_blob(const char **at, const char *end, size_t digits, struct blob *out);
