#pragma once

/* For tests on real overlays: namespaces in which they can be mounted, and many operations by chance. */

#include <stdbool.h>
#include <stdint.h>

/* A mount namespace of our own; for an ordinary user, who root becomes for it, a user namespace around it, in
 * which we are root. */
bool chance_enter_namespaces(bool as_root);

/* From whom a mount inherits nothing by chance: as the sandboxes of root, or of a user, have it. */
#define CHANCE_OPTIONS(as_root) ((as_root) ? ",redirect_dir=nofollow,index=off,metacopy=off" : "")

struct dice {
    uint64_t state;
};

struct dice chance_dice(unsigned seed);

unsigned chance_roll(struct dice *dice, unsigned sides);

/* As open(2) and write(2); what cannot be opened is passed over. */
void chance_put(const char *path, const char *content, int flags);

/* So many operations on few names below `where`, with few contents, so that they meet often.  Whatever fails,
 * fails: as it would inside. */
void chance_act(struct dice *dice, const char *where, unsigned times);

/* Calls `check` for COVE_SEEDS seeds, or so many, from COVE_SEED on. */
void chance_each_seed(unsigned seeds, void (*check)(unsigned seed));
