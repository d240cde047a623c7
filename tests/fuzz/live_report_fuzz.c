/* The report of a process that reads hostile files.  What is taken is text of a known kind; written down and
 * read again it is the same. */

#include "base/own.h"
#include "base/text.h"
#include "keeper/live_main.h"
#include "keeper/live_report.h"
#include "tests/fuzz/fuzz.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define autoend __attribute__((cleanup(live_end_free)))

static void check_same(const struct live_end *one, const struct live_end *other)
{
    check(one->brought == other->brought && one->slow == other->slow && one->rests.len == other->rests.len);
    check(memcmp(one->counts, other->counts, sizeof one->counts) == 0);
    check(one->problem.kind == other->problem.kind && strcmp(one->problem.text, other->problem.text) == 0);
    for (size_t i = 0; i < one->rests.len; i++) {
        const struct bring_rest *a = &one->rests.items[i], *b = &other->rests.items[i];

        check(a->kind < BRING_KINDS && a->kind == b->kind);
        check(strcmp(a->path, b->path) == 0 && strcmp(a->why, b->why) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autoend struct live_end end = { 0 }, again = { 0 };
    autotext struct text text = TEXT_NONE;
    /* Of exactly that size: what is read behind it is found. */
    autofree char *bytes = memory_resize(NULL, size ? size : 1);

    memcpy(bytes, data, size);
    if (!live_report_parse(bytes, size, &end))
        return 0;
    live_report_add(&end, &text);
    check(live_report_parse(text.data, text.len, &again));
    check_same(&end, &again);
    return 0;
}
