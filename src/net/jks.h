#pragma once

/* A store of certificates as Java reads it (JKS), with the password that everybody uses for public ones. */

#include <stdbool.h>
#include <stddef.h>

struct text;

/* Adds a store of all certificates in a bundle of PEM, a string of `len` bytes; false if one cannot be read,
 * then `out` is of no use. */
bool jks_write(const char *bundle, size_t len, struct text *out);
