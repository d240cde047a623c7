/* The program `cove-gateway`: it serves one sandbox, makes authorities for those to come, or looks whether
 * certificates are some. */

#include "base/error.h"
#include "base/file.h"
#include "gateway/gateway.h"
#include "net/tls.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static int mint(const char *count)
{
    enum { MOST = 64 };
    struct error ignored;

    for (unsigned long left = strtoul(count, NULL, 10); left > 0 && left <= MOST; left--) {
        struct tls_authority *made = tls_authority_new(&ignored);

        if (!made)
            return 1;
        printf("# %08" PRIx32 "\n%s%s%c", tls_authority_hash(made), tls_authority_key(made),
               tls_authority_certificate(made), '\0');
        tls_authority_free(made);
    }
    return fflush(stdout) == 0 ? 0 : 1;
}

static int check(void)
{
    enum { MOST = 1 << 20 };
    char *bundle = file_rest(STDIN_FILENO, MOST);
    struct error err = { 0 };

    if (bundle && tls_trust_new(bundle, strlen(bundle), &err))
        return 0;
    fputs(err.text, stdout);
    return 1;
}

int main(int argc, char *argv[])
{
    int fds[GATEWAY_FDS];

    (void)prctl(PR_SET_NAME, argv[0]); /* whoever is executed by a descriptor is called by its number */
    if (argc == 2 && strcmp(argv[0], GATEWAY_MINT) == 0)
        return mint(argv[1]);
    if (strcmp(argv[0], GATEWAY_CHECK) == 0)
        return check();
    /* Before a number that is free is used for something else. */
    for (int i = 0; i < GATEWAY_FDS; i++)
        fds[i] = fcntl(i, F_GETFD) < 0 ? -1 : i;
    gateway_main(fds);
}
