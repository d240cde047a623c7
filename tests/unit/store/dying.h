#pragma once

#include <stdbool.h>

/* Runs `work` in a child that is killed just before its system call number `call` (from 0).  True if it was;
 * false if it came to its end before, with `work` having given 0. */
bool dying_at(unsigned call, int (*work)(void *argument), void *argument);
