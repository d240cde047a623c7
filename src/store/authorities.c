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

static const char all[] = "../../trust";

static void name_one(size_t number, char name[NAME_SIZE])
{
    snprintf(name, NAME_SIZE, "%s/%zu", all, number);
}

static bool is_there(int dir, const char *name)
{
    return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* A rename succeeds for one of those who try.  What somebody used in the moment in which it was given back
 * goes.
 */
bool authorities_take(int dir)
{
    char name[NAME_SIZE];
    struct error ignored;

    for (size_t i = 0; i < AUTHORITIES_MAX; i++) {
        name_one(i, name);
        if (renameat(dir, name, dir, STORE_TRUST) < 0)
            continue;
        if (!is_there(dir, STORE_TRUST_USED))
            return true;
        (void)store_remove_tree(dir, STORE_TRUST, &ignored);
    }
    return false;
}

size_t authorities_wanted(int dir)
{
    char name[NAME_SIZE];
    size_t there = 0;

    for (size_t i = 0; i < AUTHORITIES_MAX && there < AUTHORITIES_FEW; i++) {
        name_one(i, name);
        there += is_there(dir, name);
    }
    return there < AUTHORITIES_FEW ? AUTHORITIES_MAX - there : 0;
}

void authorities_add(int dir, const char *name)
{
    char place[NAME_SIZE];
    struct error ignored;

    for (size_t i = 0; i < AUTHORITIES_MAX; i++) {
        name_one(i, place);
        if (renameat2(dir, name, dir, place, RENAME_NOREPLACE) == 0)
            return;
        if (errno == ENOENT) {
            autoclose int made = store_open_private(dir, all, "trust in the state directory", &ignored);

            if (made >= 0 && renameat2(dir, name, dir, place, RENAME_NOREPLACE) == 0)
                return;
        }
    }
    (void)store_remove_tree(dir, name, &ignored);
}

void authorities_give(int dir)
{
    static const char given[] = "given";
    struct error ignored;

    /* First the name, by which a gateway that is started now would find it. */
    if (renameat(dir, STORE_TRUST, dir, given) < 0)
        return;
    if (is_there(dir, "given/" TRUST_STAMP) && !is_there(dir, "given/" TRUST_USED))
        authorities_add(dir, given);
    else
        (void)store_remove_tree(dir, given, &ignored);
}

void authorities_tidy(int dir)
{
    struct error ignored;

    (void)unlinkat(dir, STORE_TRUSTED, 0); /* first: without it the layer is nothing */
    (void)store_remove_tree(dir, STORE_TRUST_LAYER, &ignored);
}
