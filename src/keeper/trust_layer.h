#pragma once

/* The files by which programs inside believe a sandbox's authority, as a layer over the image. */

#include <stdbool.h>

struct error;
struct text;

#define TRUST_OURS "/etc/cove-ca/ca.crt"
#define TRUST_EVERYBODY "/etc/cove-ca/bundle.crt"

/* Whom the host believes, to be read, as PEM; -1: there is none. */
int trust_roots(void);

/* What a layer over the root directory `image` would be made from; and whether the link `link` of `dir` says
 * that one was made from just that. */
void trust_stamp(int image, struct text *out);
bool trust_is_current(int dir, const char *link, const struct text *stamp);

/* Makes the layer of the authority, a PEM text as in gateway/gateway.h, in the directory `trust`.  `host`: the
 * image is the host's, and others may use the layer for it as long as the stamp is current. */
int trust_lay(int trust, int image, bool host, const char *authority, const struct text *stamp,
              struct error *err);
