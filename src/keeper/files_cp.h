#pragma once

/* Where a copy goes, as `cp -a` and docker cp have it:
 *
 *   a file            to a directory that is there: into it, under its own name; else: it is what is copied to
 *   a directory       to a directory that is there: into it, under its own name; to nothing: it becomes that
 *   a directory "x/." what is in it, into the directory that is there, or that is made
 *
 * Parents are not made.  A link is copied as one; `follow`, or a slash behind it, means what it leads to.  A
 * link of the host that a copy is to go to is refused, whatever it leads to: it may have been put there. */

#include <stdbool.h>

struct error;
struct files;
struct files_copy;

/* From `source` inside to `target` on the host, where "-" is a tar archive on `stream`. */
int files_cp_out(struct files *files, const char *source, const char *target, bool follow, int stream,
                 struct files_copy *copy, struct error *err);

/* From `source` on the host, where "-" is a tar archive from `stream`, to `target` inside. */
int files_cp_in(struct files *files, const char *source, const char *target, bool follow, int stream,
                struct files_copy *copy, struct error *err);
