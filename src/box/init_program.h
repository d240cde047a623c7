#pragma once

#include <stddef.h>

/* The static program of PID 1, as bytes (src/init, linked by musl). */
extern const unsigned char init_program[];
extern const size_t init_program_size;
