#pragma once

#include "box/host.h"
#include "keeper/kept.h"

struct error;

/* Which sandbox a command is about. */
struct which {
    struct host host;
    struct kept_list all;
};

#define WHICH_NONE ((struct which){ .all = KEPT_LIST_NONE })
#define autowhich __attribute__((cleanup(which_free)))

/* Reads who we are, and every sandbox there is.  Makes nothing. */
int which_read(struct which *which, struct error *err);

/* The same for who wants one sandbox only: of an id that is written out the others are not read. */
int which_read_for(struct which *which, const char *word, struct error *err);
void which_free(struct which *which);

/* The sandbox that `word` names, by its name or by the beginning of its id; without a word the last
 * one of the work tree around the current directory.  NULL: `err` says why, ERROR_MISSING if there
 * is none. */
const struct kept *which_sandbox(const struct which *which, const char *word, struct error *err);

/* The path of the work tree around the current directory; NULL if that cannot be one.  The caller frees. */
char *which_work_tree(const struct which *which, struct error *err);

/* Does the same with each sandbox that is named, and goes on after a failure, which is printed.  Gives the exit
 * code, or -1 if none is named; `command` is for that message. */
int which_each(const struct strings *words, const char *command,
               int (*act)(const char *word, const void *owner, struct error *err), const void *owner,
               struct error *err);
