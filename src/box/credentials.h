#pragma once

#include <stdbool.h>

struct error;
struct host;
struct place;

/* What must not be shown inside as a whole: the system, homes, credentials, and our own state.
 * All checks are on resolved paths.  A refusal says what, why, and what to do (ERROR_REFUSED). */

/* `place` is a directory that is to be the workspace. */
int credentials_check_workspace(const struct host *host, const struct place *place, struct error *err);

/* `place` is to be granted by files.read, files.write or -v.  A credential file that is named
 * itself passes: its owner said so. */
int credentials_check_grant(const struct host *host, const struct place *place, struct error *err);

/* The credential that `path` is or lies in, as it stands in the table; NULL if none. */
const char *credentials_around(const struct host *host, const char *path);
