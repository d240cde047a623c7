#pragma once

/* Certificate authorities that were made before somebody needs one, each for one sandbox at a time:
 *
 *   trust/0 1 ...           directories: an authority, and what was made from it (keeper/trust.h)
 *   sandboxes/<id>/trust    the sandbox's own
 *
 * One that no gateway has used has signed nothing, and nobody knows more of it than its certificate: the next
 * sandbox may have it.  All of them by a handle on a sandbox's directory. */

#include <stdbool.h>
#include <stddef.h>

#define TRUST_KEY "authority" /* and its certificate */
#define TRUST_LAYER "t"
#define TRUST_STAMP "trusted" /* a link whose text says what the layer was made from */
#define TRUST_USED "used"     /* a gateway has it, or had */

#define STORE_TRUST "trust"
#define STORE_AUTHORITY STORE_TRUST "/" TRUST_KEY
#define STORE_TRUST_LAYER STORE_TRUST "/" TRUST_LAYER
#define STORE_TRUSTED STORE_TRUST "/" TRUST_STAMP
#define STORE_TRUST_USED STORE_TRUST "/" TRUST_USED

enum { AUTHORITIES_MAX = 16, AUTHORITIES_FEW = 4 };

/* Takes one for the sandbox; false: there is none. */
bool authorities_take(int dir);

/* Takes the sandbox's from it: the next may have it if it is whole and was never used, else it is removed. */
void authorities_give(int dir);

/* How many are missing, if so many are that more should be made; else 0. */
size_t authorities_wanted(int dir);

/* Adds the directory `name` of the sandbox's to the stock; without room it is removed.  Best effort. */
void authorities_add(int dir, const char *name);

/* What can be made again, of a sandbox that does not run. */
void authorities_tidy(int dir);
