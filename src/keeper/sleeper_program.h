#pragma once

#include <stddef.h>

/* The static program of a guard that sleeps, as bytes (sleeper.c, linked by musl). */
extern const unsigned char sleeper_program[];
extern const size_t sleeper_program_size;
