#pragma once

/* One exchange as `--record` keeps it and `--replay` serves it: a line of JSON, with all that a person may want
 * to look at or change in it.  Whoever reads one believes nothing of it. */

#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct error;

enum {
    TAKE_BODY_MAX = 4 << 20, /* bytes of a body that are kept */
    TAKE_LINE_MAX = 12 << 20,
};

struct take_field {
    char *name, *value;
    bool hashed; /* a secret: `value` is the SHA-256 of what was said */
};

struct take_fields {
    struct take_field *items;
    size_t len, cap;
};

/* What one side said. */
struct take_message {
    struct take_fields fields; /* but those between two neighbours on the way */
    struct text body;          /* what was kept of it, decoded from chunks and nothing else */
    uint64_t size;             /* of all of it */
    char *sha256;              /* of all of it */
    bool cut;                  /* `body` is not all of it */
};

struct take {
    struct timespec time;
    char *host; /* in its one form */
    uint64_t port;
    char *method, *path; /* with its query */
    struct take_message request;
    uint64_t status;
    char *reason;
    struct take_message response;
};

#define TAKE_NONE ((struct take){ 0 })
#define autotake __attribute__((cleanup(take_free)))

void take_free(struct take *take);

/* Adds a field.  The value of one that usually is a secret is hashed, unless `secrets`. */
void take_add_field(struct take_message *message, const char *name, const char *value, bool secrets);

/* Whether a field of this name has a value that somebody could log in with. */
bool take_is_secret(const char *name);

/* With its line end. */
void take_write(const struct take *take, struct text *out);

/* On failure `out` is empty. */
int take_read(const char *line, size_t len, const char *shown, struct take *out, struct error *err);
