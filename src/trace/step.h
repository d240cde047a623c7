#pragma once

/* A step: one command in a sandbox that stays.  It is two lines of the trace, `step.started` and `step.ended`,
 * and, when it is known what it changed, a third and a fourth, `step.changed` and `step.files`.
 * Its strings were chosen by whoever ran the command, and paths by the command: they are inert nowhere. */

#include "base/array.h"
#include "spec/members.h"
#include "trace/read.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct error;
struct node;
struct trace;

#define STEP_STARTED "step.started"
#define STEP_ENDED "step.ended"
#define STEP_FILES "step.changed"
#define STEP_HASHED "step.files"

/* Which layer shows the files after a step; that comes before it is known what it changed (keeper/states.h). */
#define STEP_CHECKPOINT "checkpoint"

/* A keeper writes it first of all: what an earlier one has not brought to its end is lost. */
#define STEP_KEEPER "sandbox.started"

enum step_state {
    STEP_IS_RUNNING, /* as far as the trace knows */
    STEP_IS_OVER,
    STEP_IS_LOST, /* its keeper died before it could say how it ended */
};

enum step_change { STEP_ADDED, STEP_CHANGED, STEP_REMOVED };

struct step_file {
    enum step_change how;
    char *path;

    /* Of the fourth line; NULL: of this one there is none. */
    char *sha256;
    uint64_t bytes;
};

struct step_files {
    struct step_file *items;
    size_t len, cap;
};

/* What a line of the trace has room for, whatever the bytes are: argv and names by the sum of their lengths and
 * STEP_WORD_COST each. */
enum {
    STEP_WORD_COST = 16,
    STEP_ARGV_MAX = 80 << 10,
    STEP_ENVIRONMENT_MAX = 16 << 10,
    STEP_PATHS_MAX = 80 << 10,
    STEP_FILES_MAX = 256,
};

/* MEMBER_NO_NUMBER: not there, or nobody counted it. */
struct step_end {
    uint64_t exit, signal;
    char *reason; /* as result_reason_name() says it (keeper/result.h) */
    char *limit;  /* NULL: none ended it */
    uint64_t wall_us, user_us, system_us, peak_kib;
    uint64_t stdout_bytes, stdout_kept, stderr_bytes, stderr_kept;

    /* Of the third line. */
    uint64_t added, changed, removed;
    struct step_files files;
    uint64_t files_left_out;
    char *checkpoint;    /* its id; NULL: there is none */
    char *no_checkpoint; /* then, why; NULL: nothing was changed */

    /* Of the fourth line: how many changed files have no hash. */
    uint64_t hashes_left_out;
};

/* The new content of a file. */
struct step_hash {
    char *path, *sha256;
    uint64_t bytes;
};

struct step_hash_list {
    struct step_hash *items;
    size_t len, cap;
};

struct step_hashes {
    uint64_t number; /* of the step */
    struct step_hash_list files;
    uint64_t left_out; /* changed files that have none here: too many, too large, or not to be read */
};

#define STEP_HASHES_NONE ((struct step_hashes){ 0 })

void step_hashes_free(struct step_hashes *hashes);

struct step {
    uint64_t number; /* from 1, rising with every step that starts */
    struct strings argv;
    uint64_t argv_left_out; /* bytes and words that there was no room for, see step_set_argv() */
    char *cwd, *user;
    struct strings environment; /* names only */
    uint64_t environment_left_out;
    bool detached, tty;
    char *kind;  /* what it is if it is no command: "cp"; NULL */
    bool inside; /* a program inside has said all this, and nobody else knows of it */
    struct step_end end;

    /* What reading adds. */
    enum step_state state;
    struct timespec started, ended; /* CLOCK_REALTIME */
    bool looked;                    /* what it changed is known: it has its third line */
    bool verified;                  /* as in trace/read.h, of all its lines */
};

#define STEP_NONE                                                                                              \
    ((struct step){ .end = { .exit = MEMBER_NO_NUMBER,                                                         \
                             .signal = MEMBER_NO_NUMBER,                                                       \
                             .user_us = MEMBER_NO_NUMBER,                                                      \
                             .system_us = MEMBER_NO_NUMBER,                                                    \
                             .peak_kib = MEMBER_NO_NUMBER,                                                     \
                             .hashes_left_out = MEMBER_NO_NUMBER } })
#define autostep __attribute__((cleanup(step_free)))

void step_free(struct step *step);

/* These count what there is no room for.  argv: the word that does not fit is cut, the ones behind it are left
 * out; argv_left_out has their bytes, and one more for each word that is not there at all. */
void step_set_argv(struct step *step, char *const *argv);
void step_add_variable(struct step *step, const char *name);

/* Counts it as added, changed or removed as well. */
void step_add_file(struct step *step, enum step_change how, const char *path);

/* Add the line to the trace. */
int step_write_started(struct trace *trace, const struct step *step, struct error *err);
int step_write_ended(struct trace *trace, const struct step *step, struct error *err);
int step_write_changed(struct trace *trace, const struct step *step, struct error *err);
int step_write_hashes(struct trace *trace, const struct step_hashes *hashes, struct error *err);

/* The data of the third and fourth line, both ways, for whoever has them counted by another process.  False: it
 * is something else; then what was read so far is there, to be freed. */
void step_changed_node(const struct step *step, struct node *out);
bool step_changed_read(const struct node *data, struct step *out);
void step_hashes_node(const struct step_hashes *hashes, struct node *out);
bool step_hashes_read(const struct node *data, struct step_hashes *out);

/* Both lines' members as one mapping, with `state`, `started`, `ended` and `verified`. */
void step_node(const struct step *step, struct node *out);

/* "running", "over", "lost"; "added", "changed", "removed". */
const char *step_state_name(enum step_state state);
const char *step_change_name(enum step_change change);

/* All steps of a sandbox, by number. */
struct steps {
    struct step *items;
    size_t len, cap;
    uint64_t left_out; /* steps that are too many to list */
    uint64_t odd;      /* lines about steps that make no sense where they stand */
    size_t settled;    /* how many from the first on cannot be running any more */
    struct trace_found found;
};

enum { STEPS_MAX = 1 << 20 };

#define STEPS_NONE ((struct steps){ 0 })
#define autosteps __attribute__((cleanup(steps_free)))

void steps_free(struct steps *steps);

/* `held`: somebody holds the sandbox's lock; if not, what has not ended is lost.  ERROR_MISSING if there is no
 * trace. 0 also if the chain is broken: `found` says so. */
int steps_read(int dir, bool held, struct steps *out, struct error *err);

/* The same in pieces, for whoever follows: a visitor of trace_read(), whose owner is a struct steps. */
int steps_visit(void *owner, const struct trace_line *line, bool verified);

/* NULL if there is none of this number. */
const struct step *steps_find(const struct steps *steps, uint64_t number);
