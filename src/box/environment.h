#pragma once

struct host;
struct spec;
struct strings;

/* The exact environment of the command: the host variables of a fixed table, what we set
 * ourselves (HOME, USER, PATH ...), then spec->env.  Sorted, one entry a name. */
void environment_build(const struct spec *spec, const struct host *host, struct strings *out);

/* Both, where they have the same name `more`.  Sorted. */
void environment_join(const struct strings *base, const struct strings *more, struct strings *out);

/* Adds those whose names are not there yet. */
void environment_default(struct strings *env, const struct strings *defaults);
