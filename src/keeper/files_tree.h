#pragma once

/* Trees into a running sandbox and out of it, without holding them in memory.
 *
 * Out of it, what comes is put below a directory of the host by handles (inside/lay.h): it cannot lead out of
 * there, nothing is written through a link, files of another kind are not replaced, and no device, set-id bit
 * or foreign owner comes along.  Into it, the program inside does the same.  What could not be copied as it was
 * is told in `notes`, and the rest is copied. */

#include "base/array.h"

#include <stdbool.h>
#include <stdint.h>

struct error;
struct files;

enum { FILES_TOLD_MAX = 1000 };

struct files_copy {
    /* Asked often; false ends the copy, and the session, with EINTR.  May be NULL. */
    bool (*go_on)(void *owner, uint64_t files, uint64_t bytes);
    void *owner;

    /* Given: names that were made, and bytes of content; what was left out or changed, "PATH: why", not inert,
     * FILES_TOLD_MAX at most and then one that counts the rest. */
    uint64_t files, bytes;
    struct strings notes;
    uint64_t told; /* all of them */
    uint64_t lost; /* those that are about something which did not come at all */
};

#define FILES_COPY_NONE ((struct files_copy){ 0 })
void files_copy_free(struct files_copy *copy);

/* What `path` inside is comes into the directory `dir` of the host under the name `as`; if that is NULL, `path`
 * must be a directory, and what is in it comes.  `follow`: if `path` itself is a link, what it leads to. */
int files_fetch(struct files *files, const char *path, bool follow, int dir, const char *as,
                struct files_copy *copy, struct error *err);

/* What `name` in the directory `dir` of the host is, goes in as `path`; with `into`, it must be a directory,
 * and what is in it goes into the directory `path`. */
int files_store(struct files *files, int dir, const char *name, const char *path, bool into,
                struct files_copy *copy, struct error *err);

/* The same as a tar archive, which is written to `fd`.  `bare`: names count from within the directory `path`.
 */
int files_fetch_tar(struct files *files, const char *path, bool follow, bool bare, int fd,
                    struct files_copy *copy, struct error *err);

/* The members of a tar archive, read from `fd`, go into the directory `path`.  Nobody outside reads more of it
 * than its bytes: it is the program inside that takes it apart. */
int files_store_tar(struct files *files, int fd, const char *path, struct files_copy *copy, struct error *err);
