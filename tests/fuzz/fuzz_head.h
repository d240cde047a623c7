#pragma once

#include "net/fields.h"

#include "base/text.h"

/* What is written of a head can be read again, unless the lines that we add make it more than a reader takes.
 */
static inline bool is_readable(const struct text *written, size_t most)
{
    size_t lines = 0;

    for (size_t i = 0; i < written->len; i++)
        lines += written->data[i] == '\n';
    return written->len <= most && lines <= HEAD_FIELDS_MAX + 2; /* the first and the empty one */
}
