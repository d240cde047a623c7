#pragma once

/* What is known of a sandbox that is kept, as the file record.json in its directory says it.  The
 * file is written by us only; its strings may have been chosen by whoever started the sandbox, and
 * are inert nowhere. */

#include "base/array.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct error;
struct ids;
struct node;
struct text;

enum record_state { RECORD_RUNNING, RECORD_STOPPED, RECORD_KILLED };

/* A number that is not there: null in JSON. */
#define RECORD_NO_NUMBER UINT64_MAX

/* One tree that was copy on write: u<number> lies on `source`. */
struct record_layer {
    uint64_t number;
    char *source, *target;  /* outside, also if the layer lies on a copy of it; inside */
    char *why;              /* one of TREE_WHY_ (box/tree.h) */
    struct strings hide;    /* paths below it, relative, that were absent inside */
    uint64_t device, inode; /* of the source, when it was checked */
};

struct record_layers {
    struct record_layer *items;
    size_t len, cap;
};

struct record {
    char *id;
    char *name; /* NULL: none */
    enum record_state state;
    struct timespec created, ended; /* CLOCK_REALTIME; ended is zero while it runs */
    struct timespec since; /* of a fork: when the first one was made, whose changes it shows; else zero */
    time_t wall_ahead;     /* of CLOCK_BOOTTIME, when it began; not on the disk */
    struct strings argv;
    struct strings labels;   /* KEY=VALUE, each KEY once */
    struct strings services; /* NAME=STATE, of one that stays: as its keeper last saw them */
    char *workspace;         /* the work tree outside, absolute */
    uint64_t workspace_device, workspace_inode;
    bool home;  /* not written: the host has everything that the workspace's layer holds (--workspace live) */
    char *mode; /* how the workspace was seen: a choice of the field `workspace` */
    char *cwd, *image, *spec_hash;
    char *reason;                    /* why it ended, as result_reason_name() says it; NULL: nobody knows */
    char *why;                       /* the same in words, if it did not end by itself or by its owner */
    uint64_t exit_code;              /* or RECORD_NO_NUMBER */
    uint64_t keeper, keeper_started; /* its pid, and its start in clock ticks since boot */
    bool shifted, helpers;           /* as in struct ids */
    uint64_t base;                   /* outside id of 0 inside, if shifted */
    struct strings uids, gids;       /* rows of the maps: "inside outside count" */
    struct record_layers layers;

    bool paused; /* all its processes are stopped */
    uint64_t ttl_ms,
        idle_ms; /* of one that stays: what is done after so long, and after so long without a command */
    char *then;  /* "stop", "pause" or "remove"; NULL: stop */
    bool no_checkpoints; /* of one that stays: its steps are no points to go back to */
    bool stays;          /* it was made to stay (cove create), and is removed only by its owner */

    /* When all of it had come home, or was settled; zero: not yet. */
    struct timespec applied;

    /* Paths of the workspace at which the owner's own file stays: what the sandbox made of them is settled. */
    struct strings settled;
};

#define RECORD_NONE ((struct record){ .exit_code = RECORD_NO_NUMBER })
#define autorecord __attribute__((cleanup(record_free)))

void record_free(struct record *record);

/* Sorted keys, no white space, a newline at the end. */
void record_json(const struct record *record, struct text *out);

/* The same as a tree that can be added to. */
void record_node(const struct record *record, struct node *out);

/* `shown` names the document in messages.  On failure `out` is empty. */
int record_read_json(const char *bytes, size_t len, const char *shown, struct record *out, struct error *err);

/* The record in a sandbox's directory. */
int record_read(int dir, const char *id, struct record *out, struct error *err);
int record_write(int dir, const struct record *record, struct error *err);

/* "running", "stopped", "killed". */
const char *record_state_name(enum record_state state);

/* [a-z0-9][a-z0-9._-]{0,62} */
bool record_is_name(const char *name);

/* Adds KEY or KEY=VALUE, in the place of a label of the same KEY.  False: it has no such form, or
 * there are too many. */
bool record_add_label(struct strings *labels, const char *label);

/* Whether a label matches KEY, or KEY=VALUE exactly. */
bool record_has_label(const struct record *record, const char *wanted);

/* From when on what the owner changed in the workspace is not what the sandbox began with. */
struct timespec record_since(const struct record *record);

/* Whether u<number> lies on a private copy of the source, b<number> beside it. */
bool record_is_on_copy(const struct record *record, const struct record_layer *layer);

/* The workspace is called `path` by now, and so is what lies in it outside.  What things were called inside
 * stays. */
void record_move(struct record *record, const char *path);

void record_set_ids(struct record *record, const struct ids *ids);
void record_get_ids(const struct record *record, struct ids *out);
