#pragma once

#include <stdbool.h>
#include <stdint.h>

struct changes;
struct error;

/* Whether there is room for what is to be brought home: looked at before anything is written. */

/* The sum, or the most there is. */
uint64_t space_sum(uint64_t a, uint64_t b);

/* An error if the file system of `tree` has less than `wanted` bytes free for us.  What it cannot tell is
 * found out by writing. */
int space_check(int tree, uint64_t wanted, struct error *err);

/* What bringing those changes home takes of the disk at most: files are made beside their place, one by one,
 * and what they replace goes then. */
uint64_t space_of_changes(const struct changes *changes, const bool *taken);

/* Whether a file of `upper` can come to `tree` without taking room, because both share blocks. */
bool space_is_shared(int upper, int tree);
