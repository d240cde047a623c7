#pragma once

/* The rules of one .gitignore file, as git reads them.  Pure: nothing is opened.  The bytes may be
 * hostile: rules can be written that take very long to follow, so they are only followed so far.
 * Why not git itself: docs/decisions/0013. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    IGNORE_BYTES_MAX = 1 << 20,
    IGNORE_RULES_MAX = 20000,
    IGNORE_STEPS_MAX = 1 << 26, /* of one file, all questions together: some tenths of a second */
};

enum ignore_answer {
    IGNORE_UNSAID, /* no rule is about it: ask the file of the directory above */
    IGNORE_NO,     /* a rule with `!` */
    IGNORE_YES,
    IGNORE_TOO_LONG, /* its steps are used up: from now on nothing that it is about counts as ignored */
};

struct ignore_rule {
    char *pattern;      /* without `!`, slash in front and slash at the end */
    size_t plain;       /* so many bytes at its beginning have no special meaning */
    bool shows;         /* began with `!` */
    bool directory;     /* only about directories */
    bool any_directory; /* about a name, wherever it lies; else about a path */
};

struct ignore_rules {
    struct ignore_rule *items;
    size_t len, cap;
    uint64_t steps; /* that were taken */
};

#define IGNORE_RULES_NONE ((struct ignore_rules){ 0 })

void ignore_rules_free(struct ignore_rules *rules);

/* The rules of a file; `rules` is empty before.  One that is too big has none: then too much is shown, never
 * too little. */
void ignore_parse(struct ignore_rules *rules, const char *bytes, size_t len);

/* What the rules say of `path`, relative to the directory that they lie in.  Only of itself: whether a
 * directory around it is ignored has to be asked before. */
enum ignore_answer ignore_ask(struct ignore_rules *rules, const char *path, bool directory);

/* Whether `text` matches: `*` and `?` and sets stop at a slash, `**` between slashes does not.
 * *left is lessened by the steps that it takes; at 0 the answer is false. */
bool ignore_match(const char *pattern, const char *text, uint64_t *left);
