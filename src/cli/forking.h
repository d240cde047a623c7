#pragma once

/* Forks for whoever makes many of one state. */

#include "store/store.h"

struct error;

/* What a word names that can be forked: a sandbox, ID@STEP or a snapshot; NULL: the last sandbox of this work
 * tree. */
struct forking {
    char layer[ID_LENGTH + 1]; /* its files */
    char *workspace;           /* its path on the host */
    char *spec;                /* the text of spec.json */
};

#define FORKING_NONE ((struct forking){ 0 })
#define autoforking __attribute__((cleanup(forking_free)))

void forking_free(struct forking *forking);

/* A sandbox that runs is frozen, and goes on. */
int forking_look(const char *word, struct forking *out, struct error *err);

/* Keeps the state as a snapshot of that name, whatever becomes of where it is from. */
int forking_hold(const char *word, const char *name, struct error *err);

/* Makes one more sandbox with that state and one more label; it does not run yet. */
int forking_make(const char *word, const char *label, char id[ID_LENGTH + 1], struct error *err);
