#pragma once

struct error;
struct record;

/* Where the workspace of a sandbox is by now.  A directory that was renamed, or moved within its file system,
 * is still the same one, and is told by that wherever somebody points at it.
 *
 * `here` is the work tree around the current directory, `to` the directory that --to names; both may be NULL.
 * If the workspace is not where the record says, but is one of them, the record is made to name that one, in
 * memory only.  If it is neither, a `to` that exists takes its place, as another copy of the same tree: what
 * the owner has there is then all that the changes can be compared with. */
int whereabouts_find(struct record *record, const char *here, const char *to, struct error *err);
