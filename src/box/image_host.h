#pragma once

struct error;
struct host;

/* The small synthetic root of the built-in `host` image: directories to mount on, the listed
 * world-readable files of /etc, passwd, group, hosts, resolv.conf of our own.  Kept below
 * state/images and made anew when one of its sources changed.  *out is its path; the caller frees.
 * This process (and its children) hold it with a shared lock until they end: only images nobody
 * holds are ever removed. */
int image_host_root(const struct host *host, char **out, struct error *err);

/* The host's trees that are mounted over it: /usr, /opt, /bin ... where they are directories. */
struct trees;
int image_host_trees(const struct host *host, struct trees *trees, struct error *err);
