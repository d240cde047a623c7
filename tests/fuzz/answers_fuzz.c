/* What a git that may be its victim says about hostile commits.  What is taken lies within the bytes, has whole
 * hashes, and moves on. */

#include "base/own.h"
#include "git/answers.h"
#include "git/barepaths.h"
#include "tests/fuzz/fuzz.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void read_diffs(const char *bytes, const char *end, size_t digits)
{
    struct barepaths paths = BAREPATHS_NONE;
    struct diff_line line;

    for (const char *at = bytes, *before = at; answer_diff(&at, end, digits, &line) == ANSWER_ONE;
         before = at) {
        check(at > before && at <= end && *line.path);
        check(line.path > before && line.path + strlen(line.path) < at);
        check_hash(line.old_hash, digits);
        check_hash(line.new_hash, digits);
        barepaths_add(&paths, line.path);

        const char *below = barepaths_below(&paths, line.path);

        check(!below || (below >= line.path && below < line.path + strlen(line.path)));
    }
    barepaths_free(&paths);
}

static void read_blobs(const char *bytes, const char *end, size_t digits)
{
    struct blob blob;

    for (const char *at = bytes, *before = at; answer_blob(&at, end, digits, &blob) == ANSWER_ONE;
         before = at) {
        check(at > before && at <= end && blob.bytes > before && blob.bytes + blob.len < at);
        check_hash(blob.hash, digits);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autofree char *bytes = calloc(size + 1, 1);

    check(bytes);
    memcpy(bytes, data, size);
    for (size_t digits = 40; digits <= 64; digits += 24) {
        read_diffs(bytes, bytes + size, digits);
        read_blobs(bytes, bytes + size, digits);
    }
    return 0;
}
