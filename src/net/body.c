#include "net/body.h"

enum { SKIPPED_MAX = 16384, DIGITS_MAX = 15 };

enum { SIZE, EXTENSION, SIZE_LF, DATA, DATA_CR, DATA_LF, LAST, TRAILER, TRAILER_LF, LAST_LF };

void body_begin(struct body *body, enum head_body kind, uint64_t length, bool lenient)
{
    *body = (struct body){ .kind = kind, .left = kind == HEAD_LENGTH ? length : 0, .lenient = lenient };
    body->over = kind == HEAD_NO_BODY || (kind == HEAD_LENGTH && length == 0);
}

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A byte of what nobody reads.  What ends a line is no part of it. */
static bool skip(struct body *body, char c)
{
    return body->lenient && ++body->skipped <= SKIPPED_MAX && ((unsigned char)c >= ' ' || c == '\t') &&
           c != 0x7f;
}

static bool take_size(struct body *body, char c)
{
    int value = digit(c);

    if (body->digits && (c == '\r' || c == ';' || c == ' ' || c == '\t')) {
        body->state = c == '\r' ? SIZE_LF : EXTENSION;
        return c == '\r' || skip(body, c);
    }
    if (value < 0 || body->digits == DIGITS_MAX)
        return false;
    body->left = body->left << 4 | (uint64_t)value;
    body->digits++;
    return true;
}

/* A line that ends with CR LF and is not looked at. */
static bool skip_line(struct body *body, char c, unsigned char then)
{
    if (c != '\r')
        return skip(body, c);
    body->state = then;
    return true;
}

/* The first byte of a line behind the last chunk. */
static bool take_last(struct body *body, char c)
{
    body->state = c == '\r' ? LAST_LF : TRAILER;
    return c == '\r' || (c != ' ' && c != '\t' && skip(body, c));
}

static bool go_on(struct body *body, unsigned char state, bool good)
{
    body->state = state;
    return good;
}

/* One byte that is not data. */
static bool take_frame(struct body *body, char c)
{
    switch (body->state) {
    case SIZE:
        return take_size(body, c);
    case EXTENSION:
        return skip_line(body, c, SIZE_LF);
    case SIZE_LF:
        return go_on(body, body->left ? DATA : LAST, c == '\n');
    case DATA_CR:
        return go_on(body, DATA_LF, c == '\r');
    case DATA_LF:
        body->digits = 0;
        return go_on(body, SIZE, c == '\n');
    case LAST:
        return take_last(body, c);
    case TRAILER:
        return skip_line(body, c, TRAILER_LF);
    case TRAILER_LF:
        return go_on(body, LAST, c == '\n');
    default:
        body->over = c == '\n';
        return c == '\n';
    }
}

static size_t take_data(struct body *body, size_t len)
{
    size_t taken = body->left < len ? (size_t)body->left : len;

    body->left -= taken;
    return taken;
}

static int64_t next_chunked(struct body *body, const char *bytes, size_t len, struct head_part *data)
{
    size_t at = 0;

    while (at < len && !body->over && body->state != DATA)
        if (!take_frame(body, bytes[at++]))
            return -1;
    if (at == len || body->over)
        return (int64_t)at;
    *data = (struct head_part){ bytes + at, take_data(body, len - at) };
    if (body->left == 0)
        body->state = DATA_CR;
    return (int64_t)(at + data->len);
}

int64_t body_next(struct body *body, const char *bytes, size_t len, struct head_part *data)
{
    *data = (struct head_part){ bytes, 0 };
    if (body->over)
        return 0;
    if (body->kind == HEAD_CHUNKED)
        return next_chunked(body, bytes, len, data);
    data->len = body->kind == HEAD_LENGTH ? take_data(body, len) : len;
    body->over = body->kind == HEAD_LENGTH && body->left == 0;
    return (int64_t)data->len;
}
