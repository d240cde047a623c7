#include "changes/fingerprint.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "changes/scan.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

enum { DEPTH_MAX = 256 };

/* The sum does not depend on the order in which a directory is read.  Nobody who could choose names and
 * times for a collision gains by one: the tree is the owner's own. */
struct print {
    uint64_t sum;
    int depth;
    struct text path;
    struct error *err;
};

static uint64_t mix(uint64_t hash, const void *bytes, size_t len)
{
    const unsigned char *at = bytes;

    for (size_t i = 0; i < len; i++)
        hash = (hash ^ at[i]) * 0x100000001b3ULL;
    return hash;
}

static void add(struct print *print, const struct stat *status)
{
    const struct timespec times[] = { status->st_mtim, status->st_ctim };
    uint64_t hash = mix(0xcbf29ce484222325ULL, print->path.data, print->path.len);

    hash = mix(hash, &status->st_mode, sizeof status->st_mode);
    if (!S_ISDIR(status->st_mode)) {
        hash = mix(hash, &status->st_ino, sizeof status->st_ino);
        hash = mix(hash, &status->st_size, sizeof status->st_size);
        hash = mix(hash, times, sizeof times);
    }
    hash ^= hash >> 33;
    hash *= 0xff51afd7ed558ccdULL;
    print->sum += hash ^ hash >> 33;
}

static int print_in(struct print *print, int dir);

static int visit(struct print *print, int dir, const char *name)
{
    autoclose int below = -1;
    struct stat status;

    if (fstatat(dir, name, &status, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0)
        return errno == ENOENT ? 0 : error_sys(print->err, "look at %.200s", text_string(&print->path));
    add(print, &status);
    if (!S_ISDIR(status.st_mode) || strcmp(name, ".git") == 0 || print->depth >= DEPTH_MAX)
        return 0;
    below = scan_open(dir, name, O_RDONLY | O_DIRECTORY);
    if (below < 0) /* gone, closed to us, or another file system: no part of what is copied either */
        return 0;
    print->depth++;
    int result = print_in(print, steal_fd(&below));
    print->depth--;
    return result;
}

/* Owns `dir`. */
static int print_in(struct print *print, int dir)
{
    autoclosedir DIR *entries = fdopendir(dir);
    size_t before = print->path.len;
    int result = 0;

    if (!entries) {
        close(dir);
        return error_sys(print->err, "read %.200s", text_string(&print->path));
    }
    for (const struct dirent *entry; result == 0 && (entry = sys_next_entry(entries));) {
        text_add(&print->path, before ? "/" : "");
        text_add(&print->path, entry->d_name);
        result = visit(print, dir, entry->d_name);
        text_cut(&print->path, before);
    }
    return result;
}

int fingerprint_tree(int tree, uint64_t *out, struct error *err)
{
    struct print print = { .err = err };
    int dir = openat(tree, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (dir < 0)
        return error_sys(err, "open the tree");

    int result = print_in(&print, dir);

    text_free(&print.path);
    if (result == 0)
        *out = print.sum;
    return result;
}
