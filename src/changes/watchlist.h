#pragma once

#include "changes/runpart.h"

/* One kind of file.  The first row that matches a path, and whose part has changed, decides. */
struct watch_row {
    const char *pattern; /* plainname.h; NULL ends the table */
    enum classify_class class;
    runpart_check *check; /* NULL: every change counts */
    const char *keys;     /* for `check` */
    const char *reason;
};

extern const struct watch_row watchlist[];
