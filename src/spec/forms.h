#pragma once

/* The written forms of single values: each function checks one and gives its normal form.  All
 * are pure; none looks at the file system. */

#include "spec/fields.h"

/* What a written value may refer to. */
struct form_context {
    const char *home;  /* for ~; NULL: ~ is not allowed */
    const char *cwd;   /* for relative paths; NULL: they are not allowed */
    char **environ;    /* for KEY without a value; NULL: that is not allowed */
    unsigned places;   /* enum field_place from which it comes: who grants must be more exact */
    const char *shown; /* the document, or the flag; NULL: not known */
};

field_form form_word;      /* any text but the empty one */
field_form form_any;       /* any text */
field_form form_path;      /* of the host; absolute, ~/... or relative where the context has a cwd */
field_form form_directory; /* the same, and "." stays what it is */
field_form form_image;     /* "host" or a path */
field_form form_user;      /* "root", NUMBER or NUMBER:NUMBER */
field_form form_hostname;
field_form form_pattern; /* of file names to hide */
field_form form_registry;
field_form form_service_port;
field_form form_proxy; /* "none", "environment" or a URL */
field_form form_env;   /* KEY=VALUE or KEY; *out is NULL if the host has no such variable */

/* 30m, 1h30m, 7d, 500ms, plain seconds, none. */
bool form_duration(const char *in, uint64_t *out, struct text *why);
void form_duration_show(uint64_t value, struct text *out);

/* An amount of a limit: 4G, 512M (powers of 1024), 512, or of processors 1.5; or none. */
bool form_amount(enum field_type type, const char *in, uint64_t *out, struct text *why);
void form_amount_show(enum field_type type, uint64_t value, struct text *out);

/* SRC:DST[:ro|cow]; \: is a colon and \\ a backslash in a path. */
bool form_volume(const struct form_context *context, const char *in, struct volume *out, struct text *why);
bool form_volume_parts(const struct form_context *context, const char *source, const char *target,
                       const char *mode, struct volume *out, struct text *why);
void form_volume_show(const struct volume *volume, struct text *out);

extern const char *const tree_mode_names[]; /* in the order of enum tree_mode */
