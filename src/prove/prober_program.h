#pragma once

#include <stddef.h>

/* The static program that tries to get out, as bytes (prober.c, linked by musl). */
extern const unsigned char prober_program[];
extern const size_t prober_program_size;
