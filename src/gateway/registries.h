#pragma once

/* Which hosts the package registries are: read by us from the configuration of the tools, the user's and the
 * system's, and what is configured nowhere from the installed tool itself.  No tool is run (npm would obey the
 * repository), no file of the workspace is read, and no host is known here by name. */

#include "spec/network.h"

#include <sys/types.h>

struct rules;
struct spec;

/* Where to look.  Borrows all it points to. */
struct registry_places {
    const char *root;      /* before every path of the system: "" but in tests */
    const char *home;      /* the user's; NULL: none */
    const char *workspace; /* what really lies in it is passed over; NULL: none */
    uid_t uid;             /* the user: files of anybody else but root are passed over */
    char **environ;        /* the user's variables (PIP_INDEX_URL); NULL: none */
};

/* Adds a rule for each host of `registries` to `out`, with the file that named it as its place, and a note for
 * each that could not be used and each registry of which no host is known.  `variables` gets NAME=VALUE by
 * which tools inside find a registry that somebody has configured; nothing in them is secret. */
void registries_read(const struct strings *registries, enum registry_source source,
                     const struct registry_places *places, struct rule_list *out, struct strings *variables,
                     struct strings *notes);

/* The hosts of all registries, as far as that is known quickly, each with the name of its registry as its
 * place: not to allow them, but to say what would. */
void registries_hints(const struct registry_places *places, struct rule_list *out);

/* All that a spec comes to: its mode, its budget, its rules, those of its registries and of services of the
 * host. rules_free() releases it.  NULL, or why the proxy that it names cannot be used: without it nothing may
 * be reached, since nothing goes around a proxy. */
const char *rules_of_spec(const struct spec *spec, const struct registry_places *places, struct rules *out,
                          struct strings *notes);
