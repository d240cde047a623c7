#pragma once

#include <stdbool.h>

struct live_end;
struct plan;

/* --workspace live: what is said before the start, and at the end about what did not go home. */
void homing_announce(const struct plan *plan);
void homing_tell(const struct live_end *end, bool discarded, bool quiet);
