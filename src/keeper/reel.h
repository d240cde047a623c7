#pragma once

/* The files of --record and --replay, opened by the keeper: its gateway can open none. */

#include <stdbool.h>
#include <stddef.h>

struct error;
struct spec;
struct trees;

struct reel {
    int record; /* where exchanges are added, by whoever has it: it can be used for nothing else; -1: nowhere */
    bool secrets;
    int tape;         /* a sealed copy of what is served in place of the network; -1: nothing is */
    size_t broken;    /* lines of it that are no exchange ... */
    size_t first_bad; /* ... and the first of them, from 1 */
};

struct tape;
struct text;

#define REEL_NONE ((struct reel){ .record = -1, .tape = -1 })
#define autoreel __attribute__((cleanup(reel_close)))

/* `trees` are what is seen inside, where no record may lie.  `again`: the sandbox was there before, and its
 * record is added to. */
int reel_open(const struct spec *spec, const struct trees *trees, bool again, struct reel *out,
              struct error *err);
void reel_close(struct reel *reel);

/* Whether a file that is for the owner lies where nobody inside can read it, or write to it. */
int reel_outside(const char *path, const struct trees *trees, struct error *err);

/* The exchanges of a file, at least one, and its bytes. */
int reel_load(const char *path, struct text *bytes, struct tape *tape, struct error *err);
