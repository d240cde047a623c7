#pragma once

#include <stddef.h>

/* realloc that ends the process when there is no memory: a sandbox that cannot even build its
 * plan must not start. */
void *memory_resize(void *old, size_t size) __attribute__((warn_unused_result));
void *memory_zero(size_t size) __attribute__((warn_unused_result, malloc));

/* Gives pages back to the system that hold nothing any more: freed memory, and the stack below the caller. For
 * a process that will wait for long.  The next use of them costs a page fault each. */
void memory_give_back(void);
