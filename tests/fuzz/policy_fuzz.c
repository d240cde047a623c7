/* Policy files as each of the three layers.  What is taken must be taken again the same way, and
 * no message may carry a byte that a terminal obeys. */

#include "base/error.h"
#include "spec/read.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum layer_kind layers[] = { LAYER_ADMIN, LAYER_OWNER, LAYER_REPOSITORY };

    for (size_t i = 0; i < ARRAY_LEN(layers); i++) {
        struct error err = { 0 };

        if (spec_check_policy((const char *)data, size, "file", layers[i], "/home/me", &err) == 0)
            continue;
        if (err.kind != ERROR_INVALID)
            abort();
        for (const char *at = err.text; *at; at++)
            if ((unsigned char)*at < 0x20 || *at == 0x7f)
                abort();
    }
    return 0;
}
