#pragma once

struct change;
struct changed;
struct kept;

/* Both sides of a change that is in conflict, on standard error, and what they came from if that is known:
 * it is where the changes go to another tree than the sandbox began with.  Else what the sandbox saw is gone,
 * since the owner wrote over it, and only the two are compared. */
void conflict_show(const struct changed *changed, int tree, const struct change *change);

/* What can be done about conflicts, by commands that name the sandbox: it may not be the last one. */
void conflict_show_ways(const struct kept *kept);
