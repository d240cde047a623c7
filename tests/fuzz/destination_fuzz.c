/* Socket addresses, all bytes of a hostile program.  A destination in the network is digits and plain words;
 * a path is what was given. */

#include "keeper/destination.h"
#include "tests/fuzz/fuzz.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char name[DESTINATION_MAX];

    memset(name, 0xff, sizeof name); /* no end, unless one is written */
    switch (destination_read(data, size, name)) {
    case DESTINATION_INSIDE:
        break;
    case DESTINATION_NETWORK:
        check(strnlen(name, sizeof name) < sizeof name);
        check(strspn(name, "0123456789abcdef.: port") == strlen(name));
        break;
    case DESTINATION_SOCKET:
        check(strnlen(name, sizeof name) < sizeof name && name[0]);
        check(memcmp(name, data + offsetof(struct sockaddr_un, sun_path), strlen(name)) == 0);
        break;
    }
    return 0;
}
