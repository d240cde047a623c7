#pragma once

/* Lines and fields of an HTTP/1 head, of a request as of an answer, and what they say about the length of the
 * body behind them: in the one way that everybody agrees on. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HEAD_FIELDS_MAX = 128 };

struct head_part {
    const char *at;
    size_t len;
};

struct head_field {
    struct head_part name, value;
};

/* How the body ends. */
enum head_body {
    HEAD_NO_BODY,
    HEAD_LENGTH,
    HEAD_CHUNKED,
    HEAD_UNTIL_CLOSE, /* of an answer */
};

/* Everything points into the bytes that were read. */
struct fields {
    struct head_field items[HEAD_FIELDS_MAX];
    size_t count;
    enum head_body body;
    uint64_t length;             /* HEAD_LENGTH */
    bool coded;                  /* a Transfer-Encoding was said */
    bool close, keep, upgrading; /* words of Connection */
    struct head_part upgrade;    /* the value of Upgrade; of length 0: none */
};

enum head_read { HEAD_MORE, HEAD_BAD, HEAD_WHOLE };

bool part_is(struct head_part part, const char *word); /* in any case */
bool part_is_exactly(struct head_part part, const char *word);
bool part_reads_as(struct head_part part, const char *word); /* and for who takes _ for - */
bool part_is_token(struct head_part part);
bool part_is_visible(struct head_part part); /* visible ASCII, and some of it */
bool part_is_value(struct head_part part);   /* has no byte that the value of a field must not have */
struct head_part part_until(struct head_part *rest, char mark); /* takes it, and the mark, from the rest */

/* The next line, without its CR LF.  HEAD_MORE: it is not whole; HEAD_BAD: it ends otherwise. */
enum head_read line_read(const char *bytes, size_t len, size_t *at, struct head_part *line);

/* NULL, or what is wrong with it. */
const char *field_read(struct head_part line, struct fields *fields);

/* What is between two neighbours on the way and nobody else's. */
bool field_is_ours(const struct head_field *field);
