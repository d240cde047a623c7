#pragma once

#include <stddef.h>

/* The static program that marks steps from inside a sandbox, as bytes (step.c, linked by musl). */
extern const unsigned char step_program[];
extern const size_t step_program_size;
