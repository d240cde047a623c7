#include "git/land.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/own.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 16 << 10 };

/* --- the pack ------------------------------------------------------------------------------- */

/* The hash of the first `size` bytes. */
static int hash_file(int fd, size_t digits, uint64_t size, unsigned char out[HASH_BYTES_MAX])
{
    unsigned char chunk[CHUNK];
    struct hash hash;

    hash_begin(&hash, digits == 64 ? HASH_SHA256 : HASH_SHA1);
    for (uint64_t at = 0; at < size;) {
        size_t most = size - at < CHUNK ? (size_t)(size - at) : CHUNK;
        ssize_t got = pread(fd, chunk, most, (off_t)at);

        if (got <= 0)
            return -1;
        hash_add(&hash, chunk, (size_t)got);
        at += (uint64_t)got;
    }
    hash_end(&hash, out);
    return 0;
}

static void print_hash(const unsigned char *bytes, size_t digits, char out[HASH_MAX + 1])
{
    for (size_t i = 0; i < digits / 2; i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

int land_name_pack(int pack, size_t digits, char out[HASH_MAX + 1], struct error *err)
{
    unsigned char start[12] = "", hash[HASH_BYTES_MAX], end[HASH_BYTES_MAX];
    size_t bytes = digits / 2;
    struct stat status;

    if (fstat(pack, &status) < 0 || status.st_size < (off_t)(sizeof start + bytes) ||
        pread(pack, start, sizeof start, 0) != (ssize_t)sizeof start || memcmp(start, "PACK", 4) != 0)
        return error_set(err, ERROR_REFUSED, "what git packed is no pack");
    if (hash_file(pack, digits, (uint64_t)status.st_size - bytes, hash) < 0 ||
        pread(pack, end, bytes, status.st_size - (off_t)bytes) != (ssize_t)bytes)
        return error_sys(err, "read the pack");
    if (memcmp(hash, end, bytes) != 0)
        return error_set(err, ERROR_REFUSED, "what git packed is damaged");
    print_hash(hash, digits, out);
    return 0;
}

/* An index ends with the hash of its pack and its own. */
static int check_index(const struct landing *landing, struct error *err)
{
    unsigned char hash[HASH_BYTES_MAX], ends[2 * HASH_BYTES_MAX];
    char name[HASH_MAX + 1];
    size_t bytes = landing->digits / 2;
    struct stat status;

    if (fstat(landing->index, &status) < 0 || status.st_size < (off_t)(8 + 2 * bytes) ||
        pread(landing->index, ends, 2 * bytes, status.st_size - (off_t)(2 * bytes)) != (ssize_t)(2 * bytes) ||
        hash_file(landing->index, landing->digits, (uint64_t)status.st_size - bytes, hash) < 0)
        return error_set(err, ERROR_REFUSED, "what git made of the pack is no index");
    print_hash(ends, landing->digits, name);
    if (strcmp(name, landing->name) != 0 || memcmp(hash, ends + bytes, bytes) != 0)
        return error_set(err, ERROR_REFUSED, "the index is not that of the pack");
    return 0;
}

/* --- files ---------------------------------------------------------------------------------- */

static int open_directory(int dir, const char *name)
{
    return openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* What root makes in somebody else's repository belongs to whom the directory belongs to. */
static int give_to_owner(int dir, int fd)
{
    struct stat parent;

    if (geteuid() != 0)
        return 0;
    return fstat(dir, &parent) < 0 ? -1 : fchown(fd, parent.st_uid, parent.st_gid);
}

/* git's own names for what is not finished: it removes them itself in time, and takes them for nothing
 * until then. */
static int make_beside(int dir, const char *first, const char *last, char *name, size_t size)
{
    unsigned long long random;

    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        return -1;
    snprintf(name, size, "%s%016llx%s", first, random, last);
    return openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

static int copy_all(int from, int to)
{
    off_t at = 0;
    ssize_t got;

    while ((got = sendfile(to, from, &at, 1 << 30)) > 0)
        continue;
    return got < 0 ? -1 : 0;
}

static int finish(int dir, int fd, mode_t mode)
{
    return fchmod(fd, mode) < 0 || give_to_owner(dir, fd) < 0 || fsync(fd) < 0 ? -1 : 0;
}

/* A pack of this name has these bytes: nothing is left to do. */
static int give_name(int dir, const char *beside, const char *name, bool may_exist)
{
    if (renameat2(dir, beside, dir, name, RENAME_NOREPLACE) == 0)
        return 0;

    int why = errno;

    unlinkat(dir, beside, 0);
    errno = why;
    return why == EEXIST && may_exist ? 0 : -1;
}

static int lay(int dir, int from, const char *name)
{
    char beside[40];
    autoclose int fd = make_beside(dir, "tmp_cove_", "", beside, sizeof beside);

    if (fd < 0)
        return -1;
    if (copy_all(from, fd) < 0 || finish(dir, fd, 0444) < 0) {
        int why = errno;

        unlinkat(dir, beside, 0);
        errno = why;
        return -1;
    }
    return give_name(dir, beside, name, true);
}

/* The index last: a pack without one is not looked at. */
static int land_pack(const struct landing *landing, struct error *err)
{
    autoclose int objects = open_directory(landing->git, "objects"), pack = -1;
    autofree char *pack_name = text_format("pack-%s.pack", landing->name);
    autofree char *index_name = text_format("pack-%s.idx", landing->name);

    if (objects < 0)
        return error_sys(err, "open objects");
    if (mkdirat(objects, "pack", 0777) < 0 && errno != EEXIST)
        return error_sys(err, "make objects/pack");
    pack = open_directory(objects, "pack");
    if (pack < 0 || lay(pack, landing->pack, pack_name) < 0 || lay(pack, landing->index, index_name) < 0 ||
        fsync(pack) < 0)
        return error_sys(err, "write to objects/pack");
    return 0;
}

/* --- the reference -------------------------------------------------------------------------- */

/* Opens the directory `name`, after making it if it is missing. */
static int enter(int dir, const char *name, struct error *err)
{
    bool made = mkdirat(dir, name, 0777) == 0;

    if (!made && errno != EEXIST)
        return error_sys(err, "make the directory %s of references", name);

    autoclose int fd = open_directory(dir, name);

    if (fd < 0 && (errno == ENOTDIR || errno == ELOOP))
        return error_set(err, ERROR_REFUSED, "a branch, or a link, called %s is in the way", name);
    if (fd < 0 || (made && (give_to_owner(dir, fd) < 0 || fsync(dir) < 0)))
        return error_sys(err, "open the directory %s of references", name);
    return steal_fd(&fd);
}

/* The directory of refs/heads/BRANCH, with *last at its last component. */
static int enter_all(const struct landing *landing, const char **last, struct error *err)
{
    autofree char *path = text_format("refs/heads/%s", landing->branch);
    autoclose int dir = open_directory(landing->git, ".");
    char *name = path;

    if (dir < 0)
        return error_sys(err, "open the git directory");
    for (char *slash; (slash = strchr(name, '/')); name = slash + 1) {
        *slash = '\0';

        int next = enter(dir, name, err);

        if (next < 0)
            return -1;
        close(dir);
        dir = next;
    }
    *last = strrchr(landing->branch, '/') ? strrchr(landing->branch, '/') + 1 : landing->branch;
    return steal_fd(&dir);
}

/* A name that ends in .lock is no reference for git. */
#define NEW "cove-new-"
#define LOCK ".lock"

/* What we left if we were killed.  There is one of us at a time: who brings commits home holds the lock of
 * the sandbox that they are called after. */
static void remove_leftovers(int dir)
{
    int again = open_directory(dir, ".");
    autoclosedir DIR *names = again < 0 ? NULL : fdopendir(again);

    if (!names)
        own_close(&again);
    for (struct dirent *entry; names && (entry = readdir(names));)
        if (text_starts(entry->d_name, NEW) && text_ends(entry->d_name, LOCK))
            unlinkat(dir, entry->d_name, 0);
}

static int land_ref(const struct landing *landing, struct error *err)
{
    char beside[40], line[HASH_MAX + 2];
    const char *name = NULL;
    autoclose int dir = enter_all(landing, &name, err), fd = -1;
    int len = snprintf(line, sizeof line, "%s\n", landing->hash);

    if (dir < 0)
        return -1;
    remove_leftovers(dir);
    fd = make_beside(dir, NEW, LOCK, beside, sizeof beside);
    if (fd < 0)
        return error_sys(err, "make a reference");
    if (write(fd, line, (size_t)len) != len || finish(dir, fd, 0644) < 0) {
        error_sys(err, "write a reference");
        unlinkat(dir, beside, 0);
        return -1;
    }
    if (give_name(dir, beside, name, false) < 0 || fsync(dir) < 0)
        return error_sys(err, "name the reference %s", landing->branch);
    return 0;
}

/* All of a branch may have come with another one. */
static bool is_empty(const struct landing *landing)
{
    unsigned char start[12];

    return pread(landing->pack, start, sizeof start, 0) == (ssize_t)sizeof start &&
           memcmp(start + 8, "\0\0\0\0", 4) == 0;
}

int land(const struct landing *landing, struct error *err)
{
    if (is_empty(landing))
        return land_ref(landing, err);
    if (check_index(landing, err) < 0 || land_pack(landing, err) < 0)
        return -1;
    return land_ref(landing, err);
}
