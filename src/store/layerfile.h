#pragma once

/* layer.json. */

#include "store/layers.h"

struct text;

#define LAYER_FILE "layer.json"

void layerfile_write(const struct layer_info *layer, struct text *out);

/* Everything but `id`, which is not in it.  On failure `out` is empty. */
int layerfile_read(const char *bytes, size_t len, const char *shown, struct layer_info *out, struct error *err);
