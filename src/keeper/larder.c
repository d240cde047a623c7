#include "keeper/larder.h"

#include "base/array.h"
#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "store/packages.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void larder_open(struct larder *larder, int sandbox, uint64_t most)
{
    struct error ignored;

    *larder = LARDER_NONE;
    if (most)
        larder->dir = packages_enter(sandbox, &ignored);
    larder->most = most;
}

static void free_spool(struct larder_spool *spool)
{
    if (spool->given)
        close(spool->fd);
    *spool = (struct larder_spool){ 0 };
}

static bool is_uncounted(void)
{
#ifdef COVE_UNSAFE
    const char *without = getenv("COVE_UNSAFE_WITHOUT");

    return without && strstr(without, "package-count");
#else
    return false;
#endif
}

/* Whether nobody but us has it open, which the gateway's word is no proof of: a lease to write is for who is
 * alone.  Where the file system has no leases, the word has to do. */
static bool is_given_back(const struct larder_spool *spool)
{
    if (is_uncounted())
        return true;
    if (fcntl(spool->fd, F_SETLEASE, F_WRLCK) == 0)
        return fcntl(spool->fd, F_SETLEASE, F_UNLCK) == 0;
    return errno != EAGAIN && spool->tag == 0;
}

/* Nothing more is wanted of it.  If the gateway keeps it all the same, it goes on to count. */
static void finish_spool(struct larder_spool *spool)
{
    spool->tag = 0;
    if (is_given_back(spool))
        free_spool(spool);
}

static struct larder_spool *find_spool(struct larder *larder, uint64_t tag)
{
    for (size_t i = 0; i < ARRAY_LEN(larder->spools); i++)
        if (larder->spools[i].given && larder->spools[i].tag == tag)
            return &larder->spools[i];
    return NULL;
}

/* Also one of which its gateway has lost the word.  NULL: it has as many as it may have. */
static struct larder_spool *find_free(struct larder *larder)
{
    for (size_t i = 0; i < ARRAY_LEN(larder->spools); i++)
        if (!larder->spools[i].given)
            return &larder->spools[i];
    for (size_t i = 0; i < ARRAY_LEN(larder->spools); i++)
        if (is_given_back(&larder->spools[i])) {
            free_spool(&larder->spools[i]);
            return &larder->spools[i];
        }
    return NULL;
}

/* To write at its end, and for nothing else. */
static int open_for_gateway(int spool)
{
    autofree char *link = text_format("/proc/self/fd/%d", spool);

    return open(link, O_WRONLY | O_APPEND | O_CLOEXEC);
}

static enum gateway_given give_spool(struct larder *larder, const struct checksum *name, uint64_t tag, int *fd)
{
    struct larder_spool *spool = find_free(larder);
    autoclose int own = spool ? packages_spool(larder->dir) : -1;
    int theirs = own < 0 ? -1 : open_for_gateway(own);

    if (theirs < 0)
        return GATEWAY_NOTHING;
    *spool = (struct larder_spool){ .given = true, .tag = tag, .fd = steal_fd(&own), .name = *name };
    *fd = theirs;
    return GATEWAY_SPOOL;
}

enum gateway_given larder_want(struct larder *larder, const struct checksum *name, uint64_t tag, int *fd,
                               uint64_t *size)
{
    *fd = -1;
    *size = 0;
    if (larder->dir < 0 || tag == 0 || !checksum_is(name->text, NULL))
        return GATEWAY_NOTHING;
    *fd = packages_get(larder->dir, name->text, size);
    return *fd >= 0 ? GATEWAY_FILE : give_spool(larder, name, tag, fd);
}

static bool has_stower(struct larder *larder)
{
    return larder->stower.pid > 0 || stower_start(&larder->stower, larder->dir, larder->most);
}

void larder_keep(struct larder *larder, uint64_t tag)
{
    struct larder_spool *spool = tag ? find_spool(larder, tag) : NULL;

    if (!spool)
        return;
    if (has_stower(larder))
        stower_give(&larder->stower, &spool->name, spool->fd);
    finish_spool(spool);
}

void larder_drop(struct larder *larder, uint64_t tag)
{
    struct larder_spool *spool = tag ? find_spool(larder, tag) : NULL;

    if (spool)
        finish_spool(spool);
}

void larder_check(struct larder *larder, const struct checksum *name)
{
    if (larder->dir >= 0 && checksum_is(name->text, NULL) && has_stower(larder))
        stower_give(&larder->stower, name, -1);
}

bool larder_waits(const struct larder *larder)
{
    for (size_t i = 0; i < ARRAY_LEN(larder->spools); i++)
        if (larder->spools[i].tag)
            return true;
    return false;
}

void larder_drop_all(struct larder *larder)
{
    for (size_t i = 0; i < ARRAY_LEN(larder->spools); i++)
        free_spool(&larder->spools[i]);
}

void larder_close(struct larder *larder)
{
    larder_drop_all(larder);
    stower_end(&larder->stower);
    own_close(&larder->dir);
    *larder = LARDER_NONE;
}
