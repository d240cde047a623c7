#pragma once

/* The walls of a sandbox, each of which is meant to hold alone. */

enum layer {
    LAYER_NAMESPACES,
    LAYER_NETWORK,
    LAYER_MOUNTS,
    LAYER_LANDLOCK,
    LAYER_SECCOMP,
    LAYER_RIGHTS,
    LAYER_TERMINAL,
    LAYER_START,
    LAYER_LIMITS,
    LAYER_COUNT,
};

const char *layer_name(enum layer layer);

/* What it is, in a few words. */
const char *layer_words(enum layer layer);
