#pragma once

#include <stddef.h>

/* The program of the gateway, as bytes (src/gateway/main.c). */
extern const unsigned char gateway_program[];
extern const size_t gateway_program_size;
