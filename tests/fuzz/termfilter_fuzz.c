/* Whatever a program writes: the same comes out however it is cut, nothing that acts beyond the
 * screen is in it, and what came out once passes again as it is. */
#include "keeper/termfilter.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 16384 };
static unsigned char whole[3 * MOST + TERMFILTER_HELD], cut[3 * MOST + TERMFILTER_HELD];
static unsigned char again[9 * MOST + 4 * TERMFILTER_HELD];

static void need(int holds)
{
    if (!holds)
        abort();
}

static size_t run_cut(const uint8_t *data, size_t size, size_t piece, int utf8)
{
    struct termfilter filter;
    size_t used = 0;

    termfilter_start(&filter, utf8);
    for (size_t at = 0; at < size; at += piece) {
        size_t part = piece < size - at ? piece : size - at;
        size_t got = termfilter_run(&filter, data + at, part, cut + used);

        need(got <= 3 * part + TERMFILTER_HELD);
        used += got;
    }
    return used;
}

static void check_inert(const unsigned char *bytes, size_t len, int utf8)
{
    for (size_t i = 0; i < len; i++) {
        need(bytes[i] != 0x05 && bytes[i] != 0x18);
        need(utf8 || bytes[i] < 0x80 || bytes[i] >= 0xa0);
        need(!(utf8 && bytes[i] == 0xc2 && i + 1 < len && bytes[i + 1] < 0xa0));
        if (bytes[i] != 0x1b || i + 1 >= len)
            continue;
        need(!memchr("X^_k", bytes[i + 1], 4));
        if (bytes[i + 1] == ']')
            need(i + 3 < len && strchr("1458", bytes[i + 2]));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct termfilter filter;
    unsigned char last[TERMFILTER_END_MAX];

    if (size < 2 || size > MOST)
        return 0;
    int utf8 = data[0] & 1;
    size_t piece = 1 + data[1] % 64, left = size - 2;

    termfilter_start(&filter, utf8);
    size_t len = termfilter_run(&filter, data + 2, left, whole);
    int unfinished = filter.state != 0;
    need(termfilter_end(&filter, last) <= sizeof last);
    need(run_cut(data + 2, left, piece, utf8) == len && memcmp(cut, whole, len) == 0);
    check_inert(whole, len, utf8);

    termfilter_start(&filter, utf8);
    size_t second = termfilter_run(&filter, whole, len, again);
    need(unfinished || (second == len && memcmp(again, whole, len) == 0));
    return 0;
}
