#pragma once

#include <stdbool.h>

/* What a directory of a layer says about itself: the kernel shows the topmost one's, so each that is made for
 * another must say the same. */

/* Gives the directory `to_name` in `to` mode, owner, times and extended attributes of `from_name` in `from`,
 * all but the overlay's own marks.  An owner that we may not give away stays ours.  -1 and errno. */
int attributes_copy(int from, const char *from_name, int to, const char *to_name);

/* The same from one handle to another (O_PATH will do), of whatever kind, with the overlay's marks.  `status`
 * is that of `from`. */
struct stat;
int attributes_copy_all(int from, int to, const struct stat *status);

/* Whether both have the same extended attributes of those that a program can set: its own, access control
 * lists, capabilities of a file. */
bool attributes_same_extended(int one, int other);

/* Takes those of them from `to` that `from` does not have.  -1 and errno. */
int attributes_drop_extended(int from, int to);

/* The same of files, both of them open for more than their path: no call has to look a path up.  `made` becomes
 * the status that `to` had before. */
int attributes_copy_file(int from, int to, const struct stat *status, struct stat *made);
