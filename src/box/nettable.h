#pragma once

struct error;
struct strings;

/* Loads the packet rules of a sandbox into the network namespace we are in, whole or not at all, and reads back
 * that they are there.  Gives a socket by which more can be loaded.  ERROR_SYSTEM where this kernel, or our
 * rights, do not give them. */
int nettable_load(struct error *err);

/* Has TCP to these addresses turned to the gateway too: "ADDRESS PORT", also of loopback, or "*" for all there
 * are but those. */
int nettable_grant(int fd, const struct strings *granted, struct error *err);
