#pragma once

struct changed;
struct error;
struct strings;

/* What of a sandbox is done with, as its record keeps it. */

/* The owner's own stays at these paths of the workspace. */
int ledger_settle(const struct changed *changed, const struct strings *paths, struct error *err);

/* Looks once more at everything that the sandbox changed, and notes it if nothing is left to bring home but
 * what git ignores. */
int ledger_note_applied(const struct changed *changed, struct error *err);
