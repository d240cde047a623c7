#pragma once

#include "inside/frames.h"

/* Tells changes in a directory, or with `recursive` in all below it, as EVENTs with that id, until the other
 * end says something.  What cannot be watched because there is too much of it is told as lost.  -1 and errno if
 * the directory cannot be watched, or the other end is gone. */
int watch_run(struct frames *frames, uint32_t id, const char *path, bool recursive);
