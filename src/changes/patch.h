#pragma once

#include <stdbool.h>
#include <stddef.h>

struct change;
struct linediff_count;
struct text;

/* Both sides of changes: where the old and the new bytes are. */
struct patch_source {
    int upper, base;
};

/* One side's bytes: of a file, or the target of a link. */
struct patch_bytes {
    char *bytes; /* NULL: there is nothing, or too much */
    size_t len;
    bool binary;
};

void patch_read(const struct patch_source *source, const struct change *change, struct patch_bytes *old,
                struct patch_bytes *new);
void patch_bytes_free(struct patch_bytes *bytes);

/* One change as git writes it in a patch, bytes of the files included: `git apply` takes it.  What a
 * patch cannot say (an empty directory, a device) is a line that begins with "# ", which it skips.
 * The text is as hostile as the files are; whoever shows it makes it inert. */
void patch_add(const struct patch_source *source, const struct change *change, struct text *out);

/* How many lines went and came; false: it is binary, or has no lines. */
bool patch_count(const struct patch_source *source, const struct change *change, struct linediff_count *out);
