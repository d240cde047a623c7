#pragma once

#include "changes/changes.h"
#include "changes/digest.h"
#include "changes/prints.h"
#include "cli/which.h"

struct text;

/* What one sandbox changed in its workspace, and where both sides of it are. */
struct changed {
    struct which which;
    const struct kept *kept;
    int upper, base;
    int tree; /* where the changes go: the host's tree, which is the base, or what the base is a copy of */
    struct prints ours;   /* what went to the tree while the sandbox ran */
    struct strings paths; /* that were asked for, relative to the workspace; none: all */
    struct changes changes;
    struct kept own; /* if it is that of a snapshot, whose sandbox may be gone */
    char *from, *to; /* the points that it lies between (cli/between.h); NULL: from the workspace to now */
    bool linked;     /* the upper directory is a merged one, see keeper/upper.h */
    bool all;        /* no PATH was named */
    size_t
        settled; /* so many are left out, since the owner's stays there; a PATH that names one brings it back */
};

#define CHANGED_NONE ((struct changed){ .which = WHICH_NONE, .upper = -1, .base = -1, .tree = -1 })
#define autochanged __attribute__((cleanup(changed_free)))

struct changed_wish {
    const struct strings *words; /* a sandbox first, if it is one, then paths; without a sandbox the last one of
                                    this work tree */
    const char *to;              /* another copy of the workspace, which the changes are for; or NULL */
    bool home;                   /* also what the workspace has by now just as the sandbox made it */
    bool running; /* also of a sandbox that still runs, whose command may change them meanwhile */
};

/* The changes are those at and below the paths (all without any), with the new directories around them. */
int changed_read(const struct changed_wish *wish, struct changed *out, struct error *err);

/* Paths as people write them, relative to the current directory if that lies in the workspace, else to the
 * workspace; as the changes have them.  "" is the workspace.  ERROR_INVALID: one lies outside. */
int changed_paths(const struct changed *changed, const struct strings *words, size_t first, struct strings *out,
                  struct error *err);

/* An absolute path without ".", ".." and doubled slashes, by the text alone; a relative word counts from
 * `directory`.  The caller frees. */
char *changed_normal_path(const char *directory, const char *word);

/* Whether `path` is one of `paths`, or lies below one. */
bool changed_is_listed(const struct strings *paths, const char *path);

/* The sandbox that the first word names, if it names one and no path; `*paths` is the first word behind it. */
const struct kept *changed_choose(const struct which *which, const struct strings *words, size_t *paths,
                                  struct error *err);

/* The layer of the workspace; NULL: it has none. */
const struct record_layer *changed_layer(const struct record *record);

/* Keeps what the paths stand for, and warns of those that stand for no change. */
void changed_keep(struct changed *changed);
void changed_free(struct changed *changed);

/* Says which of the paths stand for no change. */
void changed_warn(const struct changed *changed, const struct strings *paths);

/* What was granted copy on write has layers of its own, which nobody brings home.  Whoever sees no change of
 * the workspace is told of them. */
void changed_tell_elsewhere(const struct changed *changed);

struct review;

/* Judges them; git's own state, which is told by commits (cli/commits.h), is folded. */
void changed_review(struct changed *changed, bool ignored, struct review *out);

/* "file", "link", "directory", "special file"; "added", "changed" ...: as JSON and people have it. */
const char *changed_kind_name(enum change_kind kind);
const char *changed_side_name(enum side_type type);

/* The name of flag `bit`, counted from 0; NULL past the last. */
const char *changed_flag_name(unsigned bit);

/* The path as one line for people, and what is odd about the change. */
void changed_describe(const struct change *change, struct text *out);
