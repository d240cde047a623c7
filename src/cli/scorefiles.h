#pragma once

/* The files that decide about a try: they come from the owner's own tree, lie read-only over what the try left,
 * and what the try made of them counts for nothing. */

#include "base/array.h"

struct changes;
struct error;
struct files;

struct scorefile {
    char *source; /* on the host; NULL: there shall be nothing */
    char *path;   /* relative to the workspace, where it is seen */
};

struct scorefiles {
    struct scorefile *items;
    size_t len, cap;
    char *workspace; /* inside, which is its path outside */
};

#define SCOREFILES_NONE ((struct scorefiles){ 0 })
#define autoscorefiles __attribute__((cleanup(scorefiles_free)))

void scorefiles_free(struct scorefiles *files);

/* Each word is PATH, in the workspace on the host and seen there, or SRC:DST, or :DST for nothing.  In the
 * first form no link may be on the way: what a repository's links lead to was not named. */
int scorefiles_read(const struct strings *words, const char *workspace, struct scorefiles *out,
                    struct error *err);

/* The changed paths that are theirs, or lie on the way to them and are no directories any more; as the changes
 * have them. */
void scorefiles_tampered(const struct scorefiles *files, const struct changes *changes, struct strings *out);

/* Removes what stands at their paths in a sandbox in which nothing else runs, and what lies on the way and is
 * no directory. */
int scorefiles_clear(const struct scorefiles *files, struct files *session, struct error *err);

/* A spec with them laid over and no network, as text; `readonly` gets their paths inside.  The caller frees;
 * NULL: `err`. */
char *scorefiles_spec(const struct scorefiles *files, const char *spec, struct strings *readonly,
                      struct error *err);
