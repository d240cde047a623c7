#pragma once

/* What a directory of a layer says about itself: the kernel shows the topmost one's, so each that is made for
 * another must say the same. */

/* Gives the directory `to_name` in `to` mode, owner, times and extended attributes of `from_name` in `from`,
 * all but the overlay's own marks.  An owner that we may not give away stays ours.  -1 and errno. */
int attributes_copy(int from, const char *from_name, int to, const char *to_name);

/* The same from one handle to another (O_PATH will do), of whatever kind, with the overlay's marks.  `status`
 * is that of `from`. */
struct stat;
int attributes_copy_all(int from, int to, const struct stat *status);

/* The same of files, both of them open for more than their path: no call has to look a path up.  `made` becomes
 * the status that `to` had before. */
int attributes_copy_file(int from, int to, const struct stat *status, struct stat *made);
