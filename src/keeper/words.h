#pragma once

/* The words of a command as they go from process to process: a memfd with the working directory, the arguments
 * and the variables, each ended by NUL (init/protocol.h). */

#include "base/array.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;

struct words {
    char *cwd;
    struct strings argv, envp;
};

#define WORDS_NONE ((struct words){ 0 })
#define autowords __attribute__((cleanup(words_free)))

void words_free(struct words *words);

/* All of them, for a new owner. */
struct words words_take(struct words *words);

/* Lists end with NULL, and may be NULL.  Gives the descriptor, and how many there were of each. */
int words_write(const char *cwd, const char *const *argv, const char *const *envp, uint32_t counts[2],
                struct error *err);

/* Reads them, of at most `most` bytes.  The file may be anything. */
int words_read(int fd, const uint32_t counts[2], size_t most, struct words *out, struct error *err);
