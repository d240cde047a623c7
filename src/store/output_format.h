#pragma once

/* The files of a step's output, for those who write and read them: docs/trace.md.  Numbers are little endian.
 */

#include "store/output.h"
#include "store/store.h"

#include <endian.h>
#include <stdint.h>
#include <stdio.h>

#define OUTPUT_MAGIC "COVEOUT1"

/* At the beginning of a segment. */
struct output_head {
    char magic[8];
    uint64_t step, segment;
    uint64_t began_us;  /* when the step began, CLOCK_REALTIME */
    uint64_t before[2]; /* bytes of each stream that came before this segment */
};

/* Before the bytes of one chunk. */
struct output_frame {
    uint8_t stream, mark;
    uint16_t len_less_one;
    uint32_t after_ms; /* the step began */
};

enum { OUTPUT_MARK = 0xa5 };

_Static_assert(sizeof(struct output_head) == 48 && sizeof(struct output_frame) == 8, "no padding");

/* The first segment has a file of its own, the others take turns. */
static inline unsigned output_slot(uint64_t segment)
{
    return segment == 0 ? 0 : 1 + (unsigned)((segment - 1) % (OUTPUT_SEGMENTS - 1));
}

struct output_name {
    char text[32];
};

static inline struct output_name output_name(uint64_t step, unsigned slot)
{
    struct output_name name;

    snprintf(name.text, sizeof name.text, "%llu.%u", (unsigned long long)step, slot);
    return name;
}
