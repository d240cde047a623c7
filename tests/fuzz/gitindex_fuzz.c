/* An index of git.  What is accepted has paths that end, and is read the same twice. */

#include "base/own.h"
#include "changes/gitindex.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct sum {
    size_t entries, bytes;
};

static void add(void *owner, const struct gitindex_entry *entry)
{
    struct sum *sum = owner;
    size_t len = strlen(entry->path);

    if (len >= GITINDEX_PATH_MAX)
        abort();
    sum->entries++;
    sum->bytes += len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autofree char *bytes = malloc(size ? size : 1);
    struct sum once = { 0 }, again = { 0 };
    struct gitindex index = { 0 };

    if (!bytes)
        abort();
    memcpy(bytes, data, size);

    int result = gitindex_read(bytes, size, add, &once, &index);

    if (result < 0 && once.entries)
        abort();
    if (gitindex_read(bytes, size, add, &again, &index) != result || once.entries != again.entries ||
        once.bytes != again.bytes || (result == 0 && once.entries > size / 62))
        abort();
    return 0;
}
