/* Bodies, taken apart and framed again. */

#include "gateway/connection.h"

#include <stdio.h>

struct head_part frame_chunk(char *room, size_t len, bool last)
{
    char size[FRAME_ROOM];
    int size_len = len ? snprintf(size, sizeof size, "%zx\r\n", len) : 0;
    char *begin = room + FRAME_ROOM - size_len, *end = room + FRAME_ROOM + len;

    memcpy(begin, size, (size_t)size_len);
    if (len)
        end = stpcpy(end, "\r\n");
    if (last)
        end = stpcpy(end, "0\r\n\r\n");
    return (struct head_part){ begin, (size_t)(end - begin) };
}

int64_t frame_pass(struct body *body, const char *bytes, size_t len, struct side *to, bool chunked,
                   struct tap *tap)
{
    static char out[FRAME_ROOM + SIDE_CHUNK + FRAME_ROOM];
    struct head_part whole = { out + FRAME_ROOM, 0 };
    size_t at = 0;
    bool sent = true;

    if (len > SIDE_CHUNK)
        len = SIDE_CHUNK;
    while (at < len && !body->over) {
        struct head_part data;
        int64_t took = body_next(body, bytes + at, len - at, &data);

        if (took < 0)
            return FRAME_BAD;
        if ((size_t)took == len && !chunked) { /* as most bodies are: it stays where it is */
            whole = data;
        } else {
            memcpy(out + FRAME_ROOM + whole.len, data.at, data.len);
            whole.len += data.len;
        }
        at += (size_t)took;
    }
    if (tap)
        tap_add(tap, whole.at, whole.len);
    if (to && (whole.len || (chunked && body->over))) {
        if (chunked)
            whole = frame_chunk(out, whole.len, body->over);
        sent = side_put(to, whole.at, whole.len);
    }
    return sent ? (int64_t)at : FRAME_GONE;
}
