#pragma once

#include <stdbool.h>

struct files_copy;
struct files_note;

/* Inside keeper/ only: what was not copied as it was, in words.  False for a reason that there is not. */
bool files_note_add(struct files_copy *copy, const struct files_note *note, const char *path);

/* Adds how many were not named. */
void files_notes_close(struct files_copy *copy);
