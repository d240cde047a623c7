#pragma once

/* Other rules for the network of a sandbox that runs. */

struct error;
struct keeper;

/* `brief` has the rules (gateway/brief.h), `spec` is the sandbox's description with them: what it is from then
 * on, also when it is started again.  Written down first; then every connection is cut. */
int repolicy(struct keeper *keeper, int brief, int spec, struct error *err);
