#pragma once

/* The tries in their order, for people and for programs. */

#include "cli/exploring.h"

/* `score` is the command that judged them; NULL: none. */
void ranked_table(const struct results *results, enum explore_keep keep, const char *score);
void ranked_json(const struct results *results, enum explore_keep keep, const char *score);
