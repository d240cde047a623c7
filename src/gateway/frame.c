/* Bodies, taken apart and framed again. */

#include "gateway/connection.h"

#include <stdio.h>

enum { FRAME_ROOM = 20 }; /* the size of a chunk and its line end */

/* One chunk of what lies behind FRAME_ROOM bytes at `out`; with room for line end and last chunk behind it. */
static bool put_chunk(struct side *to, char *out, size_t len, bool last)
{
    char size[FRAME_ROOM];
    int size_len = len ? snprintf(size, sizeof size, "%zx\r\n", len) : 0;
    char *begin = out + FRAME_ROOM - size_len, *end = out + FRAME_ROOM + len;

    memcpy(begin, size, (size_t)size_len);
    if (len)
        end = stpcpy(end, "\r\n");
    if (last)
        end = stpcpy(end, "0\r\n\r\n");
    return side_put(to, begin, (size_t)(end - begin));
}

int64_t frame_pass(struct body *body, const char *bytes, size_t len, struct side *to, bool chunked)
{
    static char out[FRAME_ROOM + SIDE_CHUNK + FRAME_ROOM];
    size_t at = 0, have = 0;
    bool sent = true;

    if (len > SIDE_CHUNK)
        len = SIDE_CHUNK;
    while (at < len && !body->over) {
        struct head_part data;
        int64_t took = body_next(body, bytes + at, len - at, &data);

        if (took < 0)
            return FRAME_BAD;
        memcpy(out + FRAME_ROOM + have, data.at, data.len);
        have += data.len;
        at += (size_t)took;
    }
    if (to && chunked && (have || body->over))
        sent = put_chunk(to, out, have, body->over);
    else if (to && have)
        sent = side_put(to, out + FRAME_ROOM, have);
    return sent ? (int64_t)at : FRAME_GONE;
}
