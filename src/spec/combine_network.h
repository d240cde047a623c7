#pragma once

#include "spec/fields.h"

struct layer;

/* combine_narrow() for network.*. */
const struct field *combine_network(const struct field *field, const struct layer *ceiling, struct spec *spec);

/* Adds what the ceiling denies or mocks, which takes nothing away from who asks for something else. */
void combine_network_denials(const struct layer *ceiling, struct spec *spec);
