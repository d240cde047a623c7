#pragma once

struct error;
struct host;
struct text;

/* The files of the `host` image that are not copies: directories to mount on, the links of the
 * root, and what names users, groups and hosts. */

/* Everything these files, and the copies beside them, are made from except the content of /etc:
 * two images with the same identity and the same sources are the same. */
void image_files_identity(const struct host *host, struct text *out);

/* Makes them below the empty directory `root`. */
int image_files_make(const struct host *host, int root, struct error *err);
