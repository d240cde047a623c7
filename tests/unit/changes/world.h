#pragma once

#include "base/error.h"
#include "base/text.h"
#include "changes/changes.h"

/* A base and an upper directory in a scratch directory, called `base` and `upper`. */
struct world {
    struct unit_scratch *scratch;
    struct changes_source source; /* filled but for `hide` and `since` */
    struct strings hide;
    struct changes changes; /* of the last scan */
    struct error err;
};

int world_setup(void **state);
int world_teardown(void **state);

/* A shell command in the scratch directory; it must succeed. */
void world_run(struct world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));

void world_whiteout(struct world *world, const char *path); /* "upper/a" */

/* Sets an attribute of overlayfs: "opaque", "redirect", of the kind that world->source names. */
void world_mark(struct world *world, const char *path, const char *name, const char *value);

/* Sets world->source.since to a time after everything that was done before. */
void world_tick(struct world *world);

void world_scan(struct world *world);

/* Scans and compares with lines such as "A path FLAG", "N path < from". */
void world_expect(struct world *world, const char *want);

/* Of the last scan; NULL if there is none at `path`. */
const struct change *world_change(const struct world *world, const char *path);

/* "ARCMTN" for the kinds, and all flags by name. */
void world_add_line(struct text *text, const struct change *change);
