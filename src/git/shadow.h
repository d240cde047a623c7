#pragma once

/* A git directory of our own making, for a git that runs contained.
 *
 * It has no configuration, no hooks and no references of anybody's: only objects.  They are copies of
 * what the sandbox wrote (regular files under the names that objects have, and nothing else of it), or
 * none; the owner's own are seen read-only beside them.  It lies in the state directory like a sandbox
 * that is not kept, so what is left of it when we are killed is swept. */

#include "base/array.h"
#include "store/store.h"

#include <stdint.h>

struct error;
struct host;
struct repository;

struct shadow {
    const struct host *host;
    struct sandbox_dir dir; /* "git", and what we need beside it */
    int git;                /* the git directory */
    int objects[8];         /* the owner's: the repository's own, then what that one borrows from */
    size_t objects_len;
    int complaints; /* what git says */
    char *user;     /* whose repository it is, if we are root: their git reads it; else NULL */
};

#define SHADOW_NONE ((struct shadow){ .dir = SANDBOX_DIR_NONE, .git = -1, .complaints = -1 })
#define autoshadow __attribute__((cleanup(shadow_remove)))

int shadow_make(const struct host *host, const struct repository *repository, struct shadow *out,
                struct error *err);
void shadow_remove(struct shadow *shadow);

/* Copies the objects that the sandbox wrote. */
int shadow_add_objects(struct shadow *shadow, const struct repository *repository, struct error *err);

/* Writes a file into the git directory, over one that is there. */
int shadow_write(const struct shadow *shadow, const char *name, const char *bytes, size_t len,
                 struct error *err);

/* A new file beside the git directory, which nobody else sees. */
int shadow_file(const struct shadow *shadow, const char *name, struct error *err);

/* What a script wrote to such a file, with a NUL behind it.  The caller frees. */
char *shadow_read(int fd, size_t *len, struct error *err);

/* Runs a shell script that calls git, contained, with the git directory at /mnt/git. */
struct shadow_script {
    const char *doing;    /* for messages: "packing the commits" */
    const char *text;     /* of the script */
    const char *words[2]; /* $1 and $2; or NULL */
    int out;              /* where its output goes */
    uint64_t output_most; /* bytes of it */
    bool may_write;       /* to a copy of the git directory that is gone afterwards */
};

int shadow_run(const struct shadow *shadow, const struct shadow_script *script, struct error *err);
