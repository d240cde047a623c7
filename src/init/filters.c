#include "init/filters.h"

#include "base/array.h"

#include "filters_generated.h"

#define FILTER(kind) [kind] = { filter_##kind, ARRAY_LEN(filter_##kind) }

/* Numbered by the bits of enum filter_kind. */
const struct filter filters[FILTER_COUNT] = {
    FILTER(0), FILTER(1), FILTER(2), FILTER(3), FILTER(4), FILTER(5), FILTER(6), FILTER(7), FILTER(8),
};
