#pragma once

/* Certificate authorities that were made before somebody needs one, each for one sandbox:
 *
 *   authorities/0 1 ...        key and certificate as PEM, for their owner only
 *   sandboxes/<id>/authority   the sandbox's own, for as long as it is there */

#include <stdbool.h>
#include <stddef.h>

struct error;

#define STORE_AUTHORITY "authority"

enum { AUTHORITIES_MAX = 16, AUTHORITIES_FEW = 4 };

/* Takes one for the sandbox `dir`; false: there is none. */
bool authorities_take(int sandboxes, int dir);

/* How many are missing, if so many are that more should be made; else 0. */
size_t authorities_wanted(int sandboxes);

/* Adds one to the stock, if there is room.  Best effort. */
void authorities_add(int sandboxes, const char *pem, size_t len);
