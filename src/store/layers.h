#pragma once

/* Frozen layers: what sandboxes had written at one moment, which nobody writes to any more.  Sandboxes, later
 * layers and snapshots share them.
 *
 *   layers/<lid>/      u0 u1 ...       one directory for each writable tree of the sandbox it is from
 *                      b0 b1 ...       instead, in the lowest one: private copies of trees (store/bottom.h)
 *                      layer.json      see struct layer_info
 *                      refs/<holder>   empty; who needs it: a sandbox, a child layer (both by id),
 * snapshot.NAME layers/new.<lid>   one that is being made; gone.<lid>: one that is being removed
 *
 * A layer goes with its last reference, and then no longer holds its parent.  `refs` is removed first: rmdir
 * succeeds only if it is empty, and afterwards nobody can add to it, so "was that the last one?" and "may I
 * still have it?" have one answer, without a lock. */

#include "base/array.h"
#include "store/store.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct error;

enum {
    LAYERS_DEPTH_MAX = 16,  /* that a stack may be handed to the kernel with */
    LAYERS_DEPTH_SOFT = 12, /* from here on its upper part should be merged */
};

#define LAYERS_NEW "new."
#define LAYERS_GONE "gone."
#define LAYERS_SNAPSHOT "snapshot."
#define LAYERS_SNAPSHOT_LINK "layer" /* in its directory, made last: without it there is no snapshot */

struct layer_info {
    char id[ID_LENGTH + 1], parent[ID_LENGTH + 1]; /* "": it lies on the base */
    char sandbox[ID_LENGTH + 1];                   /* whose step it was */
    uint64_t step;
    uint64_t ids; /* root's: where the range begins that its files are owned by; 0: there is none */
    struct timespec made;
    uint64_t weight;       /* how many steps are in it: 1, or the sum of what it was merged from */
    struct strings merged; /* the layers it stands for, newest first; empty if it is no merged one */
    bool copy;             /* nothing that a sandbox wrote: what it was given, see store/bottom.h */
    bool measured;         /* layers_measure() was here */
    uint64_t bytes, files; /* if so */
};

#define LAYER_INFO_NONE ((struct layer_info){ 0 })
#define autolayerinfo __attribute__((cleanup(layer_info_free)))

void layer_info_free(struct layer_info *layer);

/* A handle on layers/, which is made if it is not there. */
int layers_open(const char *state, struct error *err);

/* The same beside a handle on sandboxes/; nothing is made.  ERROR_MISSING: there are no layers. */
int layers_beside(int sandboxes, struct error *err);

/* While this handle is open no sweep takes away what is not held yet.  Others may have one too. */
int layers_keep_out_sweeps(int layers, struct error *err);

/* Begins a layer under its temporary name, with its file and held by `holder`, and holds its parent; gives a
 * handle on it.  `layer->id` is filled in.  Whoever does not finish it leaves it to the sweep. */
int layers_begin(int layers, struct layer_info *layer, const char *holder, struct error *err);

/* Removes one that was begun and is not wanted; what is left of it goes with the sweep. */
void layers_abandon(int layers, const struct layer_info *layer);

/* Gives it its name: from now on it is one. */
int layers_finish(int layers, const char *lid, struct error *err);

/* ERROR_MISSING if there is none, ERROR_INVALID if its file cannot be understood. */
int layers_read(int layers, const char *lid, struct layer_info *out, struct error *err);

/* Writes its file anew, at once and whole. */
int layers_write(int layers, const struct layer_info *layer, struct error *err);

/* `top` and what it lies on, newest first.  One that is longer than LAYERS_DEPTH_MAX is an error. */
int layers_chain(int layers, const char *top, struct strings *out, struct error *err);

/* ERROR_MISSING if the layer is gone.  To hold twice is the same as once. */
int layers_hold(int layers, const char *lid, const char *holder, struct error *err);

/* Lets go, and removes whatever nobody holds any more.  Not to have held is no error. */
int layers_release(int layers, const char *lid, const char *holder, struct error *err);

/* Of every layer: for a sandbox or a snapshot that is gone. */
int layers_release_all(int layers, const char *holder, struct error *err);

/* The ids of all layers, in no order. */
int layers_list(int layers, struct strings *out, struct error *err);

/* Bytes on disk that would be free without this layer.  Hard links to it from others are not. */
int layers_size(int layers, const char *lid, uint64_t *bytes, uint64_t *files, struct error *err);

/* The same, written into its file. */
int layers_measure(int layers, const char *lid, struct error *err);

/* Removes what nobody makes, needs or removes any more: references of holders that are gone (neither in
 * sandboxes/ nor in layers/, nor, as snapshot.NAME, in snapshots/), layers without references, temporary
 * names, snapshots that were not finished.  Best effort; does nothing while somebody keeps sweeps out. */
void layers_sweep(const char *state);
