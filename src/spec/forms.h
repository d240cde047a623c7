#pragma once

/* The written forms of single values: each function checks one and gives its normal form.  All
 * are pure; none looks at the file system. */

#include "spec/fields.h"

/* What a written value may refer to. */
struct form_context {
    const char *home; /* for ~; NULL: ~ is not allowed */
    const char *cwd;  /* for relative paths; NULL: they are not allowed */
    char **environ;   /* for KEY without a value; NULL: that is not allowed */
};

field_form form_word;      /* any text but the empty one */
field_form form_any;       /* any text */
field_form form_path;      /* of the host; absolute, ~/... or relative where the context has a cwd */
field_form form_directory; /* the same, and "." stays what it is */
field_form form_image;     /* "host" or a path */
field_form form_user;      /* "root", NUMBER or NUMBER:NUMBER */
field_form form_hostname;
field_form form_pattern; /* of file names to hide */
field_form form_env;     /* KEY=VALUE or KEY; *out is NULL if the host has no such variable */

/* 30m, 1h30m, 7d, 500ms, plain seconds, none. */
bool form_duration(const char *in, uint64_t *out, struct text *why);
void form_duration_show(uint64_t value, struct text *out);

/* SRC:DST[:ro|cow]; \: is a colon and \\ a backslash in a path. */
bool form_volume(const struct form_context *context, const char *in, struct volume *out, struct text *why);
bool form_volume_parts(const struct form_context *context, const char *source, const char *target,
                       const char *mode, struct volume *out, struct text *why);
void form_volume_show(const struct volume *volume, struct text *out);

extern const char *const tree_mode_names[]; /* in the order of enum tree_mode */
