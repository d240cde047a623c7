#pragma once

/* The certificate authority of a sandbox, and the files inside by which programs there believe it.
 *
 *   sandboxes/<id>/authority   key and certificate; never shown inside
 *   sandboxes/<id>/t           a layer between the image and what was written: the host's roots and the
 *                              sandbox's own, in bundles where programs look
 *   sandboxes/<id>/trusted     a link whose text says what `t` was made from */

struct error;
struct plan;
struct sandbox_dir;

/* Before anything is mounted: an authority, the sandbox's own from before if it has one, and the layer, which
 * the plan has from then on.  Variables that name a bundle are added to its environment, unless they are set.
 */
int trust_prepare(struct plan *plan, const struct sandbox_dir *dir, struct error *err);

/* Both for a directory that the next sandbox will take, and authorities for those after it.  Best effort. */
void trust_furnish(int sandboxes, int dir);
void trust_stock(int sandboxes);

/* For the gateway, as PEM; the caller frees: the sandbox's authority with its key, and whom the host believes.
 * NULL: there is none. */
char *trust_authority(int dir);
char *trust_roots(void);
