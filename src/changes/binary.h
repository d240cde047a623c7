#pragma once

#include <stddef.h>
#include <stdint.h>

struct text;

/* Bytes as git writes them in a "GIT binary patch": compressed, in base 85, 52 bytes a line. */

enum { BINARY_HEX = 40 };

/* The name that git gives to a file with these bytes, in a repository with SHA-1. */
void binary_name(const char *bytes, size_t len, char out[BINARY_HEX + 1]);

/* "literal LENGTH" and all bytes. */
void binary_add_literal(struct text *out, const char *bytes, size_t len);
