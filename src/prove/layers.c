#include "prove/layers.h"

static const struct {
    const char *name, *words;
} layers[LAYER_COUNT] = {
    [LAYER_NAMESPACES] = { "namespaces", "processes, users, names, clocks and shared objects of its own" },
    [LAYER_NETWORK] = { "network", "a network of its own, with nothing in it but a loopback" },
    [LAYER_MOUNTS] = { "mounts",
                       "a root of its own, and of the host only what the plan shows, as it shows it" },
    [LAYER_LANDLOCK] = { "landlock", "rules about files, signals and sockets, beside the mounts" },
    [LAYER_SECCOMP] = { "seccomp", "system calls that no tool needs are refused" },
    [LAYER_RIGHTS] = { "rights", "no capabilities, no way to new ones, no id of the host's root" },
    [LAYER_TERMINAL] = { "terminal", "a session without the owner's terminal" },
    [LAYER_START] = { "start", "no descriptor, no variable and no core file that was not asked for" },
    [LAYER_LIMITS] = { "limits", "no more of the machine than it may have" },
};

const char *layer_name(enum layer layer)
{
    return layers[layer].name;
}

const char *layer_words(enum layer layer)
{
    return layers[layer].words;
}
