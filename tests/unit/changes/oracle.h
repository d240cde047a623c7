#pragma once

struct world;

/* Compares the last scan of `world` with what a walk over the whole of `base` and `merged` finds, entry
 * by entry with type, mode, size and content; `what` names the case in the message. */
void oracle_check(struct world *world, const char *what);

/* One line for each entry below `top`, with mode, size and content.  The caller frees. */
char *oracle_listing(const struct world *world, const char *top);
