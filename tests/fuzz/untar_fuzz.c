/* Any bytes as a tar, in one piece and in small ones: the same is made of both, below the directory only. */

#include "base/memory.h"
#include "inside/untar.h"
#include "tests/fuzz/fuzz_scratch.h"

#include <errno.h>

static void note(void *owner, const struct files_note *note, const char *path)
{
    uint64_t *notes = owner;

    check(note->why >= WHY_FAILED && note->why <= WHY_FORM && strlen(path) < 1 << 17);
    ++*notes;
}

struct outcome {
    uint64_t files, notes;
    int result;
};

static struct outcome run(const uint8_t *data, size_t size, size_t piece)
{
    struct untar *untar = memory_zero(sizeof *untar);
    struct outcome out = { 0 };
    int top = fuzz_scratch_top();

    untar->lay.top = top;
    untar->lay.note = note;
    untar->lay.owner = &out.notes;
    lay_begin(&untar->lay);
    for (size_t at = 0; out.result == 0 && at < size; at += piece)
        out.result = untar_bytes(untar, data + at, size - at < piece ? size - at : piece);
    if (out.result == 0)
        out.result = untar_end(untar);
    out.files = untar->lay.files;
    lay_end(&untar->lay);
    free(untar);
    fuzz_scratch_done(top);
    return out;
}

/* A fuzzer hardly ever finds the right sum of a header; most inputs are given it, so that what is behind it is
 * tried. */
static void mend_sums(uint8_t *data, size_t size)
{
    for (size_t at = 0; at + UNTAR_BLOCK <= size; at += UNTAR_BLOCK) {
        unsigned sum = 8 * ' ';

        if (memcmp(data + at + 257, "ustar", 5) != 0)
            continue;
        for (size_t i = 0; i < UNTAR_BLOCK; i++)
            sum += i >= 148 && i < 156 ? 0 : data[at + i];
        snprintf((char *)data + at + 148, 8, "%06o", sum);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = memory_resize(NULL, size ? size : 1);

    memcpy(copy, data, size);
    if (size % 16 != 15)
        mend_sums(copy, size);

    struct outcome whole = run(copy, size, size ? size : 1), pieces = run(copy, size, 7);

    free(copy);
    check(whole.files == pieces.files && whole.notes == pieces.notes && whole.result == pieces.result);
    return 0;
}
