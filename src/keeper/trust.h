#pragma once

/* The certificate authority of a sandbox, and the files inside by which programs there believe it: in the
 * sandbox's directory `trust`,
 *
 *   authority   key and certificate; never shown inside
 *   t           a layer between the image and what was written: the host's roots and the sandbox's own, in
 *               bundles where programs look
 *   trusted     a link whose text says what `t` was made from
 *   used        a gateway has read the key */

#include <sys/types.h>

struct error;
struct plan;
struct sandbox_dir;

/* Before anything is mounted: an authority, the sandbox's own from before if it has one, and the layer, which
 * the plan has from then on.  Variables that name a bundle are added to its environment, unless they are set.
 */
int trust_prepare(struct plan *plan, const struct sandbox_dir *dir, struct error *err);

/* Begins with that for a sandbox of the host's image, by a child, while others plan: what it has done need not
 * be done any more, and what it could not is tried again, and told, by trust_prepare(). */
struct trust_ahead {
    pid_t child; /* -1: nothing was begun */
    int done;    /* at its end when it is over: for those whose child it is not */
};

#define TRUST_AHEAD_NONE ((struct trust_ahead){ -1, -1 })

void trust_ahead(int dir, struct trust_ahead *out);

/* Waits for it, where it is nobody's child; and where it was begun. */
void trust_heed(int done);
void trust_await(struct trust_ahead *ahead);

/* Authorities for the sandboxes to come, made below the directory of one that is over.  Best effort. */
void trust_stock(int dir);

/* For the gateway, to be read, as PEM: the sandbox's authority with its key, which from then on is never
 * another's.  -1: there is none. */
int trust_authority(int dir);
