#pragma once

#include "changes/classify.h"

struct changes;
struct digest;
struct patch_source;

/* Whether a change can run something on the owner's machine: classify() on both sides of it. */
#define verdict classify_verdict

/* One verdict for each change, and the digest of the content that was judged. */
void verdicts_of(const struct patch_source *source, const struct changes *changes, struct verdict *out,
                 struct digest *contents);
