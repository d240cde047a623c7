#pragma once

#include "changes/classify.h"

struct changes;
struct patch_source;

/* Whether a change can run something on the owner's machine: classify() on both sides of it. */
#define verdict classify_verdict

void verdict_of(const struct patch_source *source, const struct changes *changes, size_t index,
                struct verdict *out);
