/* The record of a kept sandbox.  What is taken must come back from its own JSON the same. */

#include "base/error.h"
#include "base/text.h"
#include "keeper/record.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autorecord struct record record = RECORD_NONE, again = RECORD_NONE;
    autotext struct text json = TEXT_NONE, json_again = TEXT_NONE;
    struct error err = { 0 };

    if (record_read_json((const char *)data, size, "file", &record, &err) < 0)
        return 0;
    record_json(&record, &json);

    /* The canonical form can be longer than what was read, and past the bound of the reader. */
    if (json.len > 1 << 20)
        return 0;
    if (record_read_json(json.data, json.len, "file", &again, &err) < 0)
        abort();
    record_json(&again, &json_again);
    if (strcmp(json.data, json_again.data) != 0)
        abort();
    return 0;
}
