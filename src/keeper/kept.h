#pragma once

/* The sandboxes that are there: those that run and will be kept, and those that were kept. */

#include "base/error.h"
#include "keeper/record.h"
#include "store/store.h"

enum kept_state {
    KEPT_RUNNING,
    KEPT_PAUSED, /* it runs, but all its processes are stopped */
    KEPT_STOPPED,
    KEPT_KILLED, /* its keeper died before it could write down how it ended */
    KEPT_BROKEN, /* its record cannot be read: `problem` */
};

struct kept {
    char id[ID_LENGTH + 1];
    enum kept_state state;
    struct record record; /* empty if broken */
    struct error problem;
};

/* Newest first, broken ones last. */
struct kept_list {
    int parent; /* sandboxes/, -1 if there is none */
    struct kept *items;
    size_t len, cap;
};

#define KEPT_LIST_NONE ((struct kept_list){ .parent = -1 })
#define autokept __attribute__((cleanup(kept_free)))

enum { KEPT_PREFIX_LEAST = 3, KEPT_ID_SHOWN = 12 };

/* Only the one with this id, written out; false if there is none, or if that is no id. */
bool kept_read_one(const char *state, const char *id, struct kept_list *out);

/* All sandboxes of a state directory; an empty list if there is no such directory. */
int kept_read(const char *state, struct kept_list *out, struct error *err);

/* The same of a handle on sandboxes/, which is copied. */
int kept_read_at(int parent, struct kept_list *out, struct error *err);
void kept_free(struct kept_list *list);

/* Whether somebody keeps it: running or paused. */
bool kept_is_alive(const struct kept *kept);

/* Refuses one whose record cannot be read. */
int kept_check_whole(const struct kept *kept, struct error *err);

const char *kept_state_name(enum kept_state state);

/* What people call it, in messages and on a command line: its name, or the beginning of its id. */
struct kept_word {
    char text[64];
};

struct kept_word kept_word(const struct kept *kept);

/* The sandbox of this name, or else the only one whose id begins so.  NULL: ERROR_MISSING, or
 * ERROR_INVALID with the candidates, or if the beginning is too short. */
const struct kept *kept_find(const struct kept_list *list, const char *word, struct error *err);

/* The newest one whose workspace is this directory, or else was at this path; NULL if there is none. */
struct stat;
const struct kept *kept_newest_of(const struct kept_list *list, const char *workspace,
                                  const struct stat *status);

/* Whether the command changed the workspace, the repository it belongs to, or a granted directory:
 * what it left in their layers.  `dir` is the sandbox's directory. */
bool kept_is_changed(int dir, const struct record *record);

/* The same of granted directories alone, which nobody brings home. */
bool kept_has_changed_grants(int dir, const struct record *record);

/* A handle on its directory. */
int kept_open(const struct kept_list *list, const struct kept *kept, struct error *err);

/* Waits for the guard of one that has just ended, which removes from its directory what it does not know: also
 * what a reader puts there. */
void kept_settle(const struct kept *kept, int dir);

/* Reads its record anew, into the same place, for who has got the lock on `dir` by now: what was read before
 * may be of a time when somebody else had it.  ERROR_MISSING: it was removed meanwhile. */
int kept_renew(const struct kept_list *list, const struct kept *kept, int dir, struct error *err);

/* Removes it with everything in it; ERROR_REFUSED if it runs. */
int kept_remove(const struct kept_list *list, const struct kept *kept, struct error *err);
