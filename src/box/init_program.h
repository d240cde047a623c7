#pragma once

#include "box/lent.h"

#include <stddef.h>

/* The static program of PID 1, as bytes (src/init, linked by musl). */
extern const unsigned char init_program[];
extern const size_t init_program_size;

/* By which sandboxes that stay lend it to each other. */
static inline struct lent init_lent(void)
{
    return (struct lent){ "cove-init", init_program, init_program_size };
}
