#include "store/authorities.h"

#include "base/error.h"
#include "base/own.h"
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_SIZE = 32 };

static void name_one(size_t number, char name[NAME_SIZE])
{
    snprintf(name, NAME_SIZE, "../authorities/%zu", number);
}

/* A rename succeeds for one of those who try. */
bool authorities_take(int sandboxes, int dir)
{
    char name[NAME_SIZE];

    for (size_t i = 0; i < AUTHORITIES_MAX; i++) {
        name_one(i, name);
        if (renameat(sandboxes, name, dir, STORE_AUTHORITY) == 0)
            return true;
    }
    return false;
}

size_t authorities_wanted(int sandboxes)
{
    char name[NAME_SIZE];
    size_t missing = 0;

    for (size_t i = 0; i < AUTHORITIES_MAX; i++) {
        name_one(i, name);
        missing += faccessat(sandboxes, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0;
    }
    return AUTHORITIES_MAX - missing < AUTHORITIES_FEW ? missing : 0;
}

void authorities_add(int sandboxes, const char *pem, size_t len)
{
    char fresh[ID_LENGTH + 1], name[NAME_SIZE];
    struct error ignored;
    autoclose int all = store_open_private(sandboxes, "../authorities", "authorities", &ignored);

    if (all < 0 || store_new_id(fresh, &ignored) < 0 || store_write_file(all, fresh, pem, len, &ignored) < 0)
        return;
    for (size_t i = 0; i < AUTHORITIES_MAX; i++) {
        name_one(i, name);
        if (renameat2(all, fresh, sandboxes, name, RENAME_NOREPLACE) == 0)
            return;
    }
    (void)unlinkat(all, fresh, 0);
}
