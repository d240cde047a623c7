#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct error;
struct text;

/* Who may have written a file for us to believe it. */
struct file_rules {
    uid_t owner, other_owner; /* of the file and of its directory; root's is other_owner for users */
    const char *who;          /* the same for people: "root", "you or root" */
    bool links;               /* the directory may be a symbolic link to one */
};

/* Reads a whole policy file: a regular file of at most 1 MB, no symbolic link, that nobody but
 * `rules` can have written.  All of it is checked on the handle that is read.
 * Returns 1, with nothing in `out`, if there is no such file. */
int file_read_trusted(const char *path, const struct file_rules *rules, struct text *out, struct error *err);

/* Reads the file `name` in `directory` (an open directory, which remains the caller's), believing
 * nobody: only its kind and size are checked.  Returns 1 if there is none. */
int file_read_untrusted(int directory, const char *name, const char *shown, struct text *out,
                        struct error *err);

/* Reads what the owner names: a file, a pipe, a terminal.  At most 1 MB. */
int file_read_named(const char *path, struct text *out, struct error *err);
