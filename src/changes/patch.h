#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct change;
struct changes;
struct linediff_count;
struct text;

/* Both sides of changes: where the old and the new bytes are. */
struct patch_source {
    int upper, base;
    bool for_eyes;        /* a person reads it: no bytes of binary files, directories that moved in one line */
    uint64_t binary_most; /* of larger binary files it is only said that they differ; 0: of none */
};

/* One side's bytes: of a file, or the target of a link. */
struct patch_bytes {
    char *bytes; /* with a NUL behind them; NULL: there is nothing, or too much, or it cannot be read */
    size_t len;
    bool binary;
    bool gone; /* it was a file, and is none any more: whoever writes there is still at it */
};

void patch_read(const struct patch_source *source, const struct change *change, struct patch_bytes *old,
                struct patch_bytes *new);
/* One regular file; without bytes if there is none. */
void patch_read_file(int root, const char *path, struct patch_bytes *out);
void patch_read_open(int fd, struct patch_bytes *out);
void patch_bytes_free(struct patch_bytes *bytes);

/* The change at `index` as git writes it in a patch, bytes of the files included: `git apply` takes it.
 * What a patch cannot say (an empty directory, a device, most of a mode) is a line that begins with "# ",
 * which git skips and which no file can forge.  The text is as hostile as the files are; whoever shows it
 * makes it inert. */
void patch_add(const struct patch_source *source, const struct changes *changes, size_t index,
               struct text *out);

/* How many lines went and came; false: it is binary, or has no lines. */
bool patch_count(const struct patch_source *source, const struct change *change, struct linediff_count *out);
