#include "inside/ask.h"

#include <string.h>

static bool take_string(char *to, const unsigned char *from, size_t len)
{
    if (len > FILES_PATH_MAX || memchr(from, '\0', len))
        return false;
    memcpy(to, from, len);
    to[len] = '\0';
    return true;
}

bool ask_read(const struct frame *frame, struct ask *out)
{
    struct files_request *request = &out->request;

    if (frame->length < sizeof *request)
        return false;
    memcpy(request, frame->bytes, sizeof *request);
    if ((uint64_t)request->path_len + request->other_len != frame->length - sizeof *request ||
        !request->path_len)
        return false;
    out->id = frame->id;
    out->told = false;
    return take_string(out->path, frame->bytes + sizeof *request, request->path_len) &&
           take_string(out->other, frame->bytes + sizeof *request + request->path_len, request->other_len);
}
