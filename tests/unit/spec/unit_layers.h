#pragma once

#include "spec/read.h"
#include "tests/support/unit_scratch.h"

/* One start with all its layers, each given as text: NULL is a layer that does not exist. */
struct layers {
    const char *admin, *owner, *policy, *repository;
    const char *flags[24]; /* "--timeout", "5m", ... ; a NULL ends them */
};

struct outcome {
    int result;
    bool repository; /* the repository's layer had its turn */
    struct spec spec;
    struct spec_origins origins;
    struct error *err;
};

/* Writes the files below `scratch` (as admin.yaml, owner.yaml, policy.yaml, cove.yaml), reads them
 * and fills `out`, which outcome_free() releases. */
void layers_read(const struct unit_scratch *scratch, const struct layers *layers, struct outcome *out);
void outcome_free(struct outcome *outcome);

/* "files: {read: VALUE}" for files.read; the caller frees. */
char *layers_yaml(const struct field *field, const char *value);

/* The field as value_show() has it; the caller frees. */
char *layers_shown(const struct field *field, const struct spec *spec);
