#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

struct text;

/* Members of a tar archive in the pax form (POSIX.1-2001), always the same bytes for the same member: owner
 * and group are 0, times are whole seconds from 1970 on. */
enum tar_type { TAR_FILE, TAR_DIRECTORY, TAR_LINK, TAR_HARD_LINK };

struct tar_member {
    const char *path; /* relative, any bytes */
    enum tar_type type;
    mode_t mode;   /* & 0777 counts */
    uint64_t size; /* of a file */
    time_t mtime;
    const char *target; /* of a link; of a hard link the path of an earlier member */
};

enum { TAR_BLOCK = 512 };

/* Everything that stands before the content: what does not fit into the old header is in an extended one. */
void tar_add_header(const struct tar_member *member, struct text *out);

/* How many zero bytes follow content of this size. */
size_t tar_padding(uint64_t size);

/* The end of an archive. */
void tar_add_end(struct text *out);
