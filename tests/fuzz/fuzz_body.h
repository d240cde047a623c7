#pragma once

/* A body is the same however it comes, and what it is made of is its data. */

#include "net/body.h"

#include "base/own.h"
#include "base/text.h"
#include "tests/fuzz/fuzz.h"

static inline int64_t take_body(struct body *body, const char *bytes, size_t len, size_t step,
                                struct text *data)
{
    size_t at = 0;

    while (at < len && !body->over) {
        struct head_part part;
        int64_t took = body_next(body, bytes + at, len - at < step ? len - at : step, &part);

        if (took < 0)
            return -1;
        check(took > 0 && part.at >= bytes && part.at + part.len <= bytes + len);
        text_add_bytes(data, part.at, part.len);
        at += (size_t)took;
    }
    return (int64_t)at;
}

static inline void check_body(enum head_body kind, uint64_t length, bool lenient, const char *bytes, size_t len)
{
    autotext struct text at_once = TEXT_NONE, by_byte = TEXT_NONE;
    struct body one, other;

    body_begin(&one, kind, length, lenient);
    other = one;
    int64_t taken = take_body(&one, bytes, len, len, &at_once);

    check(take_body(&other, bytes, len, 1, &by_byte) == taken && taken <= (int64_t)len);
    check(taken < 0 || (one.over == other.over && at_once.len == by_byte.len &&
                        memcmp(text_string(&at_once), text_string(&by_byte), at_once.len) == 0));
}
