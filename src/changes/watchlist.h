#pragma once

#include "changes/runpart.h"

/* Which function of runpart.h looks at the part that runs something. */
enum watch_part {
    PART_WHOLE, /* none: every change counts */
    PART_ATTRIBUTES,
    PART_EXECUTABLE,
    PART_GITCONFIG,
    PART_INI,
    PART_JSON,
    PART_PAIRS,
    PART_PLAIN,
    PART_PROPERTIES,
    PART_PTH,
    PART_TOML,
    PART_WORDS,
};

/* And with which keys. */
enum watch_keys {
    KEYS_NONE,
    KEYS_GITMODULES,
    KEYS_MISE_TOML,
    KEYS_MISE_WORDS,
    KEYS_ODD_VERSION,
    KEYS_RUST_TOOLCHAIN,
    KEYS_NPMRC,
    KEYS_GRADLE_PROPERTIES,
    KEYS_PIP_OPTIONS,
    KEYS_PACKAGE_JSON,
    KEYS_COMPOSER_JSON,
    KEYS_C_PLUGINS,
    KEYS_SETUP_CFG,
    KEYS_PYPROJECT,
    KEYS_CARGO_TOML,
    KEYS_GO_SOURCE,
    KEYS_GO_MOD,
    KEYS_DESKTOP_ENTRY,
};

/* One kind of file.  The first row that matches a path, and whose part has changed, decides.  There is no
 * address in a row: six hundred of them would be put right at each start, and be memory of each keeper alone.
 */
struct watch_row {
    char pattern[56]; /* plainname.h; empty: the end of the table */
    enum classify_class class;
    enum watch_part part;
    enum watch_keys keys;
    char reason[68];
};

extern const struct watch_row watchlist[];

/* NULL: every change counts. */
runpart_check *watchlist_check(const struct watch_row *row);

const char *watchlist_keys(const struct watch_row *row);
