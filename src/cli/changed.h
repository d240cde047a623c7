#pragma once

#include "changes/changes.h"
#include "changes/digest.h"
#include "cli/which.h"

struct text;

/* What one sandbox changed in its workspace, and where both sides of it are. */
struct changed {
    struct which which;
    const struct kept *kept;
    int upper, base;
    int tree; /* where the changes go: the host's tree, which is the base, or what the base is a copy of */
    struct changes changes;
    uint64_t git_state; /* so many more of git's own, which are not listed (git/own.h) */
    bool all;           /* no PATH was named */
};

#define CHANGED_NONE ((struct changed){ .which = WHICH_NONE, .upper = -1, .base = -1, .tree = -1 })
#define autochanged __attribute__((cleanup(changed_free)))

/* `words`: a sandbox first, if it is one, then paths; without a sandbox the last one of this work
 * tree.  The changes are those at and below the paths (all without any); *paths is set to how many
 * words are paths. */
int changed_read(const struct strings *words, struct changed *out, struct error *err);
void changed_free(struct changed *changed);

/* True for "a" and "a/b" below "a", "a/" and "./a": the workspace's own names are what counts. */
bool changed_is_below(const char *path, const char *wanted);

/* Of all that was read (changes/digest.h): for `cove apply --reviewed`. */
void changed_digest(const struct changed *changed, char out[SHA256_TEXT]);

/* "file", "link", "directory", "special file"; "added", "changed" ...: as JSON and people have it. */
const char *changed_kind_name(enum change_kind kind);
const char *changed_side_name(enum side_type type);

/* The name of flag `bit`, counted from 0; NULL past the last. */
const char *changed_flag_name(unsigned bit);

/* The path as one line for people, and what is odd about the change. */
void changed_describe(const struct change *change, struct text *out);
