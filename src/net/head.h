#pragma once

/* The head of an HTTP/1 request, read in the one way that all servers agree on.  What could be read in two ways
 * is refused. */

#include "net/fields.h"

struct text;

enum { HEAD_MAX = 16384, HEAD_METHOD_MAX = 32 };

/* Everything points into the bytes that were read. */
struct head {
    struct head_part method, target;
    struct head_part host; /* of the target if that is a whole URL or an authority, else the field's */
    struct head_part path; /* the target without scheme and host; begins with a slash, or is "*" */
    bool old;              /* HTTP/1.0 */
    bool absolute;         /* the target is a whole URL, as a proxy is asked */
    bool tunnel;           /* CONNECT: the target is an authority, and there is no path */
    bool expects;          /* to be told to go on before it sends the body */
    bool alone;            /* a body that its method does not have: servers may take it for a request */
    bool overridden;       /* a field names another method or path, which some servers take instead */
    bool websocket;        /* asks for another protocol, and for this one */
    struct fields fields;
    size_t size; /* with the empty line at the end */
};

/* Reads what a client has sent so far.  `why` says what is wrong with a bad one. */
enum head_read head_read(const char *bytes, size_t len, struct head *out, const char **why);

/* Parts host and port; false: it is not HOST or HOST:PORT.  `port` stays as it is if none is named. */
bool head_authority(struct head_part authority, struct head_part *host, uint16_t *port);

/* As it goes on to a server: for `host`, in origin form, and without what was said to us alone.  One that is
 * `alone` is the last of its connection. */
void head_write(const struct head *head, const char *host, struct text *out);
