#pragma once

/* The repositories of a workspace: its own, or the one that a linked work tree belongs to, and those
 * of submodules.  Only what the owner has counts: what a sandbox made up has no home to go to. */

#include "git/merged.h"

#include <sys/types.h>

struct error;
struct record;

struct repository {
    char *path;           /* of the git directory on the host, absolute */
    char *submodule;      /* its name, from the owner's own files; NULL: the workspace's repository */
    char *work;           /* where one would call git: absolute */
    char *head;           /* directory of HEAD below the git directory: "", or "worktrees/NAME" */
    struct merged merged; /* the git directory, as the sandbox left it over the owner's */
    struct merged own;    /* the owner's alone */
    size_t digits;        /* of a hash: 40 or 64 */
};

struct repositories {
    struct repository *items;
    size_t len, cap;
};

#define REPOSITORIES_NONE ((struct repositories){ 0 })
#define autorepositories __attribute__((cleanup(repositories_free)))

void repositories_free(struct repositories *list);

/* Those whose files the sandbox wrote to.  `dir` is its directory.  Refuses kinds of repositories whose
 * references or objects are not simply files here. */
int repositories_find(int dir, const struct record *record, struct repositories *out, struct error *err);

/* The layer of the sandbox that lies over the git directory of a linked work tree; -1 if there is none.
 * The other two are the handles that were asked for: its upper directory and its base. */
struct record_layer;
const struct record_layer *repository_layer(const struct record *record);
int repository_open_layer(int dir, const struct record *record, const struct record_layer *layer,
                          struct merged *out, struct error *err);
