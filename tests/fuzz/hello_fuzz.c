/* Any first bytes: a name lies within what was read, and a whole one stays whole however much follows it. */
#include "net/hello.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static unsigned char scratch[HELLO_MAX];
    const char *name;
    size_t len;
    enum hello hello = hello_read(data, size, scratch, &name, &len);

    if (hello != HELLO_WHOLE)
        return 0;
    check(len == 0 ||
          ((const unsigned char *)name >= scratch && (const unsigned char *)name + len <= scratch + HELLO_MAX));
    /* None of its parts was whole, or the same. */
    for (size_t part = 0; part < size; part++) {
        enum hello before = hello_read(data, part, scratch, &name, &len);

        check(before != HELLO_BAD);
    }
    return 0;
}
