#pragma once

struct error;
struct strings;

/* Adds the paths below the directory `fd` that not everybody may read: files without the right for
 * others, and directories whole.  For trees whose ids are mapped, where root inside would be let in
 * by the owner's right. */
int closed_find(int fd, struct strings *out, struct error *err);
