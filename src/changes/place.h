#pragma once

/* Inside changes/ only: one change on its way home, and the steps that each leave a whole tree. */

#include "changes/apply.h"

#include <sys/stat.h>

struct digest;

enum { BESIDE_MAX = 48 };

struct task {
    const struct apply *apply;
    const struct change *change;
    const struct digest *content; /* what it must be; NULL: not known */
    int parent;                   /* the directory of the tree that it lies in */
    const char *name;             /* in there */
    char beside[BESIDE_MAX];      /* the name under which it is made */
    struct stat seen;             /* what is there now; st_mode 0: nothing */
    struct apply_result *result;
};

/* All return -1, with the result said. */
int place_conflict(struct task *task, const char *why);
int place_refuse(struct task *task, const char *why);
int place_failed(struct task *task, const char *what); /* by errno */

/* Whether it takes a copy of a file.  Of such a change the owner of apply->accept is asked when the copy is
 * made; of others before the step. */
bool place_copies(const struct change *change);

/* 0: it is accepted. */
int place_ask(struct task *task, int original, int copy);

/* Makes the new one and puts it where `seen` is. */
int place_put(struct task *task);

/* Removes `seen`. */
int place_take_away(struct task *task);

/* Gives `seen` the mode of the new one.  `open`: a directory stays open to its owner, until all is
 * in it. */
int place_mode(struct task *task, bool open);

/* The target of a link, or "". */
struct link_target {
    char text[4096];
};
struct link_target place_target(int dir, const char *name);

/* --- leftovers.c: what an earlier try left -------------------------------------------------------- */

/* The same for the same place, so that a second try finds what the first one left. */
void leftover_name(const char *name, char out[BESIDE_MAX]);
bool leftover_is(const char *name);

/* Removes what lies at task->beside, if no byte of the owner's is lost by that; else it is a conflict.
 * `path` is where the sandbox's own file is in its layer. */
int leftover_clear(struct task *task, const char *path);

/* The same for every place that the sandbox wrote to, also for those that are done. */
void leftovers_sweep(const struct apply *apply);
