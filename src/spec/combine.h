#pragma once

#include "spec/fields.h"

struct layer;

/* Makes one field of `spec` no wider than `ceiling` allows.  Returns the field of the ceiling that
 * took something away (for grants it may be another one than `field`), NULL if nothing changed.
 * For COMBINE_UNION what changed is that there is more of it. */
const struct field *combine_narrow(const struct field *field, const struct layer *ceiling, struct spec *spec);

/* What a ceiling adds without taking anything away from who asks for less: a limit that is simply hard then, a
 * host that is denied and that nobody asked for. */
void combine_harden(const struct field *field, const struct layer *ceiling, struct spec *spec);

/* False if the layer says which images may be used and `image` is none of them. */
bool combine_image_allowed(const struct layer *ceiling, const char *image);
