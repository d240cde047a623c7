#include "base/memory.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *memory_resize(void *old, size_t size)
{
    static const char message[] = "cove: out of memory\n";
    void *new = realloc(old, size ? size : 1);

    if (!new) {
        (void)!write(STDERR_FILENO, message, sizeof message - 1);
        _exit(125);
    }
    return new;
}

void *memory_zero(size_t size)
{
    return memset(memory_resize(NULL, size), 0, size);
}
