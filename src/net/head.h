#pragma once

/* The head of an HTTP/1 request and the length of its body, read in the one way that all servers agree on. What
 * could be read in two ways is refused. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text;

enum { HEAD_MAX = 16384, HEAD_FIELDS_MAX = 100, HEAD_METHOD_MAX = 32 };

struct head_part {
    const char *at;
    size_t len;
};

struct head_field {
    struct head_part name, value;
};

/* How the body ends. */
enum head_body { HEAD_NO_BODY, HEAD_LENGTH, HEAD_CHUNKED };

/* Everything points into the bytes that were read. */
struct head {
    struct head_part method, target;
    struct head_part host; /* of the target if that is a whole URL, else the field's */
    struct head_part path; /* the target without scheme and host; begins with a slash, or is "*" */
    bool old;              /* HTTP/1.0 */
    enum head_body body;
    uint64_t length; /* HEAD_LENGTH */
    struct head_field fields[HEAD_FIELDS_MAX];
    size_t count;
    size_t size; /* with the empty line at the end */
};

enum head_read { HEAD_MORE, HEAD_BAD, HEAD_WHOLE };

/* Reads what a client has sent so far.  `why` says what is wrong with a bad one. */
enum head_read head_read(const char *bytes, size_t len, struct head *out, const char **why);

/* Parts host and port; false: it is not HOST or HOST:PORT.  `port` stays as it is if none is named. */
bool head_authority(struct head_part authority, struct head_part *host, uint16_t *port);

/* As it goes on to a server: for `host`, in origin form, as the only request of its connection, and without
 * what was said to us alone. */
void head_write(const struct head *head, const char *host, struct text *out);

/* A body that passes. */
struct body {
    enum head_body kind;
    uint64_t left;        /* of the body, or of the chunk */
    unsigned char state;  /* of a chunked one */
    unsigned char digits; /* of the size of a chunk, so far */
    bool over;
};

void body_begin(struct body *body, const struct head *head);

/* How many of the bytes belong to the body: all of them, unless it is over (body->over).  -1: it is not framed
 * as it must be. */
int64_t body_take(struct body *body, const char *bytes, size_t len);
