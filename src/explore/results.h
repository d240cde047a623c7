#pragma once

/* The file of results: a first line that says what is explored, then one line a try.  Each is written whole and
 * is on the disk before anything is done because of it, so that whoever goes on after a kill knows what was
 * done. */

#include "base/map.h"
#include "explore/tried.h"

#include <stddef.h>

struct error;

enum { RESULTS_MAX = 1000000, RESULTS_BYTES_MAX = 1 << 30 };

/* What is explored.  Who goes on must want the same. */
struct results_about {
    char *run;    /* a word of its own for this one: its sandboxes have the label explore=RUN */
    char *layer;  /* the state that is forked */
    char *digest; /* of command, score, tasks: what else makes results comparable */
};

struct results {
    struct results_about about; /* `run` NULL: there is no first line yet */
    struct tried *items;
    size_t len, cap;
    struct map known; /* which tries these are */
    size_t whole;     /* bytes of the file that are whole lines: the rest was cut off by a kill */
};

#define RESULTS_NONE ((struct results){ 0 })
#define autoresults __attribute__((cleanup(results_free)))

void results_free(struct results *results);

/* Of a try that is there twice, the first counts.  On failure `out` is empty. */
int results_parse(const char *bytes, size_t len, const char *shown, struct results *out, struct error *err);

bool results_have(const struct results *results, uint64_t task, uint64_t number);

/* Owns it from now on, unless there is one of that try already: false. */
bool results_take(struct results *results, struct tried *tried);

/* Opens the file, made if it is not there, and holds its lock; reads it and cuts off what is not whole.  Gives
 * a descriptor.  ERROR_REFUSED: somebody else is at work with it. */
int results_open(const char *path, struct results *out, struct error *err);

/* Appends and waits for the disk. */
int results_begin(int fd, const struct results_about *about, struct error *err);
int results_add(int fd, const struct tried *tried, struct error *err);
