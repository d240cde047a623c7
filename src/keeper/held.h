#pragma once

#include <signal.h>
#include <stdbool.h>

/* The signals that ask us to end.  They are held back as long as somebody must stay alive: between the
 * making of a directory and having somebody who removes it, and until the keeper listens. */

/* Holds them back until the old mask is set again. */
void held_begin(sigset_t *old);

/* Whether one of them waits. */
bool held_waits(void);
