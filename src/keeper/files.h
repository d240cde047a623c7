#pragma once

/* Files of a running sandbox, by the program inside (src/inside).
 *
 * Paths are looked up inside, by a process that can go nowhere a command could not go; outside no path of a
 * sandbox is ever looked up.  What the program says is believed as little as anything else from inside: an
 * answer that was not asked for, is too long or out of order ends the session, and every later call on it
 * fails.
 *
 * All calls wait for their answer, as long as `patience` lets them; a failure is ERROR_SYSTEM with the errno
 * that the program saw, unless the session itself has failed.  Names and link targets that are given may hold
 * any bytes but NUL.  SIGPIPE must be ignored. */

#include "inside/protocol.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

struct error;
struct files;

/* Owns both descriptors from now on, also after a failure: `to` leads to its standard input, `from` comes from
 * its standard output. */
struct files *files_open(int to, int from, struct error *err);
void files_close(struct files *files);

#define autofiles __attribute__((cleanup(files_close_it)))
static inline void files_close_it(struct files **files)
{
    if (*files)
        files_close(*files);
}

/* How long the program may do nothing; 0: for ever.  `go_on` is asked several times a second, and false ends
 * the session with EINTR; it may be NULL. */
void files_be_patient(struct files *files, uint64_t patience_ms, bool (*go_on)(void *owner), void *owner);

struct files_info {
    uint32_t mode; /* as stat(2) has it */
    uint64_t size;
    struct timespec mtime;
    uint32_t uid, gid;  /* inside */
    const char *target; /* of a link, else ""; valid until the next call */
};

/* `follow`: if it is a link, what it leads to. */
int files_stat(struct files *files, const char *path, bool follow, struct files_info *out, struct error *err);

/* Calls `each` for every name, in no particular order, `most` times at most; *out_more says whether there are
 * others.  False from `each` leaves the rest out. */
int files_list(struct files *files, const char *path, uint64_t most,
               bool (*each)(void *owner, const char *name, const struct files_info *info), void *owner,
               bool *out_more, struct error *err);

/* Gives `take` the content from `offset` on, at most `length` bytes and not more than the file had when it was
 * opened.  -1 from `take`, with its error set, ends the session.  What is no regular file is ESPIPE or EISDIR.
 */
int files_read(struct files *files, const char *path, uint64_t offset, uint64_t length,
               int (*take)(void *owner, const void *bytes, size_t len, struct error *err), void *owner,
               struct error *err);

/* Asks `give` for bytes until it gives 0.  `flags`: FILES_APPEND, FILES_NEW, FILES_WHOLE; `mode`: UINT32_MAX
 * for what a command would get.  -1 from `give`, with its error set, leaves with FILES_WHOLE what was there;
 * without it what came so far stays. */
int files_write(struct files *files, const char *path, uint32_t flags, uint32_t mode,
                ssize_t (*give)(void *owner, void *bytes, size_t room, struct error *err), void *owner,
                struct error *err);

/* A directory; `parents`: those on the way too, and it may be there already. */
int files_make(struct files *files, const char *path, uint32_t mode, bool parents, struct error *err);

/* `new`: EEXIST if `to` is there. */
int files_move(struct files *files, const char *path, const char *to, bool new, struct error *err);
int files_remove(struct files *files, const char *path, bool recursive, struct error *err);
int files_symlink(struct files *files, const char *path, const char *target, struct error *err);
int files_chmod(struct files *files, const char *path, uint32_t mode, struct error *err);
int files_touch(struct files *files, const char *path, struct timespec mtime, bool follow, struct error *err);

struct files_seen {
    uint32_t change, cookie; /* struct files_event */
    const char *path;        /* below the directory; valid until the next call */
};

/* From here on every change in the directory is seen.  Until files_unwatch() nothing else can be asked: who
 * wants both opens two sessions. */
int files_watch(struct files *files, const char *path, bool recursive, struct error *err);

/* The next one; 0 if there is none within so many milliseconds (-1: waits), 1 if there is. */
int files_watch_next(struct files *files, int timeout_ms, struct files_seen *out, struct error *err);
int files_unwatch(struct files *files, struct error *err);

/* To be watched by an event loop: readable when files_watch_next() has something, or may have. */
int files_descriptor(const struct files *files);
