#include "base/memory.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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

/* Below the stack is nothing that could be hit: the kernel keeps 128 MiB free there. */
static __attribute__((noinline)) void give_stack_back(void)
{
#ifndef COVE_SANITIZED
    const uintptr_t page = 4096, most = 256 << 10;
    uintptr_t end = ((uintptr_t)__builtin_frame_address(0) & ~(page - 1)) - page; /* our own frames stay */

    (void)madvise((void *)(end - most), most, MADV_DONTNEED);
#endif
}

void memory_give_back(void)
{
    (void)malloc_trim(0);
    give_stack_back();
}
