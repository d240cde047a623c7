/* A spec as JSON.  What is taken must come back from its own JSON with the same hash. */

#include "base/error.h"
#include "base/text.h"
#include "spec/read.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autospec struct spec spec = SPEC_NONE, again = SPEC_NONE;
    autotext struct text json = TEXT_NONE;
    struct error err = { 0 };
    char hash[65], hash_again[65];

    if (spec_read_json((const char *)data, size, "file", &spec, &err) < 0)
        return 0;
    spec_json(&spec, &json);

    /* The canonical form can be longer than what was read, and past the bound of the reader. */
    if (json.len > 1 << 20)
        return 0;
    if (spec_read_json(json.data, json.len, "file", &again, &err) < 0)
        abort();
    spec_hash(&spec, hash);
    spec_hash(&again, hash_again);
    if (strcmp(hash, hash_again) != 0)
        abort();
    return 0;
}
