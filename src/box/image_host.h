#pragma once

#include <stdbool.h>
#include <stddef.h>

struct error;
struct host;

/* Whether the image still is what its sources are: a question that can be put off, because to ask
 * it takes longer than most of a start, and beside that there is time. */
struct image_check {
    int etc, stamp; /* descriptors */
    char *map;      /* of the stamp, of this length: most of it is read when it is asked */
    size_t len;
    size_t sources; /* where they begin in it */
    bool all;       /* the files too, not only their directories */
};

#define IMAGE_CHECK_NONE ((struct image_check){ .etc = -1, .stamp = -1 })

bool image_check_holds(const struct image_check *check);
void image_check_free(struct image_check *check);

/* The small synthetic root of the built-in `host` image: directories to mount on, the listed
 * world-readable files of /etc, passwd, group, hosts, resolv.conf of our own.  Kept below
 * state/images and made anew when one of its sources changed.  *out is its path; the caller frees.
 * This process (and its children) hold it with a shared lock until they end: only images nobody
 * holds are ever removed.  With `later` the sources may not have been looked at yet: before anything
 * runs in the image, image_check_holds() must be true, or it must be asked for once more without. */
int image_host_root(const struct host *host, struct image_check *later, char **out, struct error *err);

/* The host's trees that are mounted over it: /usr, /opt, /bin ... where they are directories. */
struct trees;
int image_host_trees(const struct host *host, struct trees *trees, struct error *err);
