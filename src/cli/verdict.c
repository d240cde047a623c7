#include "cli/verdict.h"

#include "changes/review.h"

void verdict_of(const struct patch_source *source, const struct changes *changes, size_t index,
                struct verdict *out)
{
    review_verdict(source, changes, index, out);
}
