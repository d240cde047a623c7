#pragma once

#include <stddef.h>

/* The static program that handles files inside a sandbox, as bytes (files.c, linked by musl). */
extern const unsigned char files_program[];
extern const size_t files_program_size;
