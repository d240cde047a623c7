#pragma once

/* The state directory: one directory a sandbox, each held by an flock of its keeper.
 *
 *   sandboxes/<id>/   u0 w0 u1 w1 ...  upper and work directories of the writable layers
 *                     b0 b1 ...        private copies of trees, which the layers lie on (--workspace copy)
 *                     m0 m1 ...        layers of white-outs that hide paths
 *                     trust            by which its gateway answers for others (store/authorities.h)
 *                     record.json      what is known of it, unless it keeps nothing (--rm)
 *                     trace.jsonl      what happened in it, step by step, if it is one that stays
 *                     output/          what its steps wrote, as far as it is kept
 *                     stack            the frozen layer that u0 u1 ... lie on, if any (store/stack.h)
 *   spare             the next sandbox's directory, if there was time to make it;
 *                     l... in it: a first layer with the way to a workspace (box/laid.h)
 *   trust             that of the next sandboxes (store/authorities.h)
 *   packages          package files, by their hashes (store/packages.h)
 *   cove-init, cove-guard  lead to programs in memory, while a sandbox lends them (box/lent.h)
 *   images/empty      a directory that is always empty (the second lower of a read-only tree)
 *
 * A directory whose lock nobody holds is a sandbox that does not run.  With a record it is kept
 * until somebody removes it; without one it is what a dead keeper left, and the next end of a run
 * removes it. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;
struct strings;

enum { ID_LENGTH = 20 };

#define STORE_RECORD "record.json"
#define STORE_SPEC "spec.json"    /* of a sandbox that stays: what it is */
#define STORE_PRINTS "prints"     /* what went to the host meanwhile (changes/prints.h) */
#define STORE_TRACE "trace.jsonl" /* what happened in it (trace/trace.h) */
#define STORE_OUTPUT "output"     /* what its steps wrote (store/output.h) */

/* Links that lead nowhere: what counts is their text, the id of a layer. */
#define STORE_STACK "stack"
#define STORE_FREEZING "freezing" /* what was begun and is to be brought to its end (store/stack.h) */
#define STORE_TURNING "turning"

struct sandbox_dir {
    int parent; /* sandboxes/ */
    int fd;     /* sandboxes/<id>, locked */
    char id[ID_LENGTH + 1];
};

#define SANDBOX_DIR_NONE ((struct sandbox_dir){ -1, -1, "" })

/* Makes state/ and what lies directly below it (0700, ours, no other's link on the way), and a
 * new sandbox directory in it. */
int store_create(const char *state, struct sandbox_dir *out, struct error *err);

/* Removes the sandbox with everything in it, whatever modes the payload left, and closes. */
int store_remove(struct sandbox_dir *dir, struct error *err);

/* Puts there what a sandbox that is to come finds in its directory; false: it could not. */
typedef bool spare_furnish(const void *owner, int dir);

/* Leaves a directory ready for the next store_create(), with what `furnish` puts into it, unless NULL.  Best
 * effort. */
void store_make_spare(int parent, spare_furnish *furnish, const void *owner);

/* Removes what dead keepers left and has no record; what has one, and was not tidied up, is added
 * to `unfinished`.  Best effort: a failure is left to the next. */
void store_sweep(const struct sandbox_dir *own, struct strings *unfinished);

/* To look at all of many takes its time, and keeps others waiting: whoever has swept says what that took of a
 * processor, in microseconds, and until twenty times that has passed nobody sweeps again. */
bool store_may_sweep(int parent);
void store_swept(int parent, uint64_t took_us);

/* Removes `name` below `dir` with all its content, never following a link, and never what is mounted there:
 * then it fails, and what is mounted stays as it is. */
int store_remove_tree(int dir, const char *name, struct error *err);

/* For commands about sandboxes that exist.  Nothing is made. */

/* A handle on sandboxes/; ERROR_MISSING if there is none. */
int store_open(const char *state, struct error *err);

/* The ids of all sandboxes, in no order. */
int store_list(int parent, struct strings *out, struct error *err);

/* A handle on sandboxes/<id>, without its lock. */
int store_enter(int parent, const char *id, struct error *err);

/* Whether somebody else holds the lock.  Must not be asked of a directory without a record: its
 * keeper may be about to take it. */
bool store_is_held(int fd);

/* Takes the lock, waiting so long at most; -1 if somebody else still has it. */
int store_hold(int fd, unsigned patience_ms);

/* Replaces a file of the sandbox, or its record, at once and whole, readable for its owner only. */
int store_write_file(int dir, const char *name, const char *bytes, size_t len, struct error *err);
int store_write_record(int dir, const char *bytes, size_t len, struct error *err);

/* From now on the directory is no more than what a dead keeper left. */
void store_drop_record(int dir);

/* Begins to write it to the disk, and what the sandbox is, so that a crash of the machine leaves each whole or
 * as it was. */
void store_flush_record(int dir);

/* Removes everything but the upper directories, what they lie on, and what is known of it.  Best effort. */
void store_tidy(int dir);

/* For the rest of this folder. */

/* Opens the directory `name` in `dir`, made if needed, and checks that it is ours alone. */
int store_open_private(int dir, const char *name, const char *shown, struct error *err);

/* A name that nobody has. */
int store_new_id(char id[ID_LENGTH + 1], struct error *err);
bool store_is_id(const char *name);
