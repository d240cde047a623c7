/* The root of the `host` image, kept below state/images:
 *
 *   for-WHO -> host-KEY  which one is current; WHO is a hash of the identity: the owner's, and that of the
 *                      confined programs that read what sandboxes made
 *   host-KEY/stamp     who it was made for and what its sources were, see etcfiles.h
 *   host-KEY/root/     the files
 *   new-*              one that is being made, or removed
 *
 * KEY is a hash of identity and sources, so two starters that make one at the same time make the
 * same one, and the second throws its own away.  Whoever uses one holds a shared lock on it until
 * the process ends; whoever makes a new one removes those that are current for nobody, or were not used
 * for long, and that nobody holds. */

#include "box/image_host.h"

#include "base/array.h"
#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "box/etcfiles.h"
#include "box/host.h"
#include "box/image_files.h"
#include "box/names.h"
#include "box/place.h"
#include "box/tree.h"
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

enum {
    STAMP_MAX = 4 << 20,
    NAME_SIZE = 32,
    TRIES = 4, /* /etc may change while it is copied; not that often */
    UNUSED_S = 7 * 24 * 3600,
};

/* FNV-1a: the sources are root's files, nobody looks for collisions here. */
static const uint64_t HASH_BEGIN = 0xcbf29ce484222325ULL;

static uint64_t hash(uint64_t sum, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        sum = (sum ^ (unsigned char)bytes[i]) * 0x100000001b3ULL;
    return sum;
}

static void name_current(const struct text *identity, char name[NAME_SIZE])
{
    snprintf(name, NAME_SIZE, "for-%016" PRIx64, hash(HASH_BEGIN, identity->data, identity->len));
}

static int open_images(const struct host *host, struct error *err)
{
    autofree char *path = text_format("%s/images", host->state);
    autoclose int fd = -1;
    struct stat found;

    if (host_make_directory(host, err) < 0)
        return -1;
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return error_sys(err, "make %.200s", path);
    fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &found) < 0)
        return error_sys(err, "open %.200s", path);
    if (found.st_uid != geteuid() || (found.st_mode & 022))
        return error_set(err, ERROR_REFUSED, "%.200s is not ours alone; remove it", path);
    return steal_fd(&fd);
}

/* Opens an image and locks it (flock).  -1, and errno ENOENT if there is none of that name (any more). */
static int lock_image(int images, const char *name, int how)
{
    autoclose int fd = openat(images, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat held, named;

    if (fd < 0 || flock(fd, how) < 0 || fstat(fd, &held) < 0)
        return -1;
    /* Whoever removed it while we waited for the lock renamed it first. */
    if (fstatat(images, name, &named, AT_SYMLINK_NOFOLLOW) < 0)
        return -1;
    if (held.st_ino == named.st_ino)
        return steal_fd(&fd);
    errno = ENOENT;
    return -1;
}

/* Looking at directories alone takes 0.1 ms instead of 0.4, and shows every file that came, went or
 * was replaced, which is how programs change files of /etc.  One that was written to in place is
 * noticed this much later at most. */
enum { LATELY_S = 10 };

static bool was_checked_lately(const struct stat *stamp)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return stamp->st_mtim.tv_sec <= now.tv_sec && stamp->st_mtim.tv_sec > now.tv_sec - LATELY_S;
}

bool image_check_holds(const struct image_check *check)
{
    if (!check->map)
        return true; /* was looked at */
    if (!etcfiles_unchanged(check->etc, check->map + check->sources, check->len - check->sources, check->all))
        return false;
    if (check->all)
        (void)futimens(check->stamp, NULL);
    return true;
}

void image_check_free(struct image_check *check)
{
    own_close(&check->etc);
    own_close(&check->stamp);
    if (check->map)
        munmap(check->map, check->len);
    *check = IMAGE_CHECK_NONE;
}

/* The stamp begins with the identity and its NUL.  It is never written to, only replaced. */
static bool read_check(int image, const struct text *identity, struct image_check *out)
{
    size_t skip = identity->len + 1;
    struct stat found;

    out->stamp = openat(image, "stamp", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (out->stamp < 0 || fstat(out->stamp, &found) < 0 || found.st_size > STAMP_MAX ||
        (size_t)found.st_size <= skip)
        return false;
    char *map = mmap(NULL, (size_t)found.st_size, PROT_READ, MAP_PRIVATE, out->stamp, 0);

    if (map == MAP_FAILED)
        return false;
    out->map = map;
    out->len = (size_t)found.st_size;
    out->sources = skip;
    out->all = !was_checked_lately(&found);
    return memcmp(map, text_string(identity), skip) == 0;
}

static bool is_fresh(int image, const struct text *identity, int etc, struct image_check *later)
{
    struct image_check check = IMAGE_CHECK_NONE;
    bool fresh = read_check(image, identity, &check);

    check.etc = fresh ? fcntl(etc, F_DUPFD_CLOEXEC, 0) : -1;
    if (fresh && later && check.etc >= 0) {
        image_check_free(later);
        *later = check;
        return true;
    }
    fresh = fresh && check.etc >= 0 && image_check_holds(&check);
    image_check_free(&check);
    return fresh;
}

/* The lock lives as long as the process, and its children inherit it: a sandbox may still look up
 * names in the image when everything else about its start is forgotten. */
static void hold(int *image)
{
    static int held = -1;

    own_close(&held);
    held = steal_fd(image);
}

static bool read_current(int images, const char *current, char name[NAME_SIZE])
{
    ssize_t len = readlinkat(images, current, name, NAME_SIZE - 1);

    if (len < 0)
        return false;
    name[len] = '\0';
    return text_starts(name, "host-") && !strchr(name, '/');
}

/* Finds the current image if it is still right and holds it; false if one has to be made. */
static bool use_current(int images, const struct text *identity, int etc, struct image_check *later,
                        char name[NAME_SIZE])
{
    char current[NAME_SIZE];

    name_current(identity, current);
    if (!read_current(images, current, name))
        return false;

    autoclose int image = lock_image(images, name, LOCK_SH);
    if (image < 0 || !is_fresh(image, identity, etc, later))
        return false;
    hold(&image);
    return true;
}

static int new_name(char name[NAME_SIZE], struct error *err)
{
    uint64_t number;

    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        return error_sys(err, "get random bytes");
    snprintf(name, NAME_SIZE, "new-%016" PRIx64, number);
    return 0;
}

/* Temp file and rename: a reader sees the old stamp or the new one. */
static int write_stamp(int image, const struct text *stamp, struct error *err)
{
    char name[NAME_SIZE];

    if (new_name(name, err) < 0)
        return -1;
    autoclose int fd = openat(image, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, stamp->data, stamp->len) != (ssize_t)stamp->len ||
        renameat(image, name, image, "stamp") < 0)
        return error_sys(err, "write the stamp of the host image");
    return 0;
}

/* What an image is made from, and under which name. */
struct recipe {
    const struct host *host;
    struct etcfiles files;
    struct text stamp; /* identity, NUL, sources */
    size_t sources;    /* where those begin */
    char name[NAME_SIZE];
};

/* The first source is /etc itself, which changes with files that are not shown: it is part of the
 * stamp, which says when to look again, but not of the name. */
static int write_recipe(struct recipe *recipe, const struct text *identity, int etc, struct error *err)
{
    text_add_bytes(&recipe->stamp, text_string(identity), identity->len + 1);
    recipe->sources = recipe->stamp.len;
    if (etcfiles_scan(etc, &recipe->files, &recipe->stamp, err) < 0)
        return -1;

    const char *stamp = recipe->stamp.data;
    size_t skip = recipe->sources + strlen(stamp + recipe->sources) + 1;
    uint64_t sum = hash(HASH_BEGIN, stamp, recipe->sources);

    sum = hash(sum, stamp + skip, recipe->stamp.len - skip);
    snprintf(recipe->name, sizeof recipe->name, "host-%016" PRIx64, sum);
    return 0;
}

static int fill(const struct recipe *recipe, int image, int etc, struct error *err)
{
    autoclose int root = -1, into = -1;

    if (mkdirat(image, "root", 0755) < 0 || fchmodat(image, "root", 0755, 0) < 0)
        return error_sys(err, "make a root");
    root = openat(image, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return error_sys(err, "open the new root");
    if (image_files_make(recipe->host, root, err) < 0)
        return -1;
    into = openat(root, "etc", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (into < 0)
        return error_sys(err, "open the new /etc");
    return etcfiles_copy(etc, &recipe->files, into, err);
}

/* A new directory, locked.  Before it is, whoever sweeps may take it for one that was left behind. */
static int make_locked(int images, char name[NAME_SIZE], struct error *err)
{
    for (int i = 0; i < TRIES; i++) {
        if (new_name(name, err) < 0)
            return -1;
        if (mkdirat(images, name, 0700) < 0)
            return error_sys(err, "make the host image");

        int image = lock_image(images, name, LOCK_EX | LOCK_NB);

        if (image >= 0)
            return image;
        if (errno != ENOENT && errno != EWOULDBLOCK) {
            error_sys(err, "lock the host image");
            (void)unlinkat(images, name, AT_REMOVEDIR);
            return -1;
        }
    }
    return error_set(err, ERROR_SYSTEM, "the host image is removed as soon as it is made; try again");
}

/* Makes the image under a name of its own, then gives it the one it is found by. */
static int build(const struct recipe *recipe, int images, int etc, struct error *err)
{
    char temporary[NAME_SIZE];
    struct error ignored;

    autoclose int image = make_locked(images, temporary, err);

    if (image < 0)
        return -1;
    int result = fill(recipe, image, etc, err);
    if (result == 0)
        result = write_stamp(image, &recipe->stamp, err);
    if (result == 0 && renameat2(images, temporary, images, recipe->name, RENAME_NOREPLACE) == 0)
        return 0;
    if (result == 0 && errno != EEXIST)
        result = error_sys(err, "put the host image in place");
    (void)store_remove_tree(images, temporary, &ignored);
    return result;
}

static int make_current(int images, const struct text *identity, const char *name, struct error *err)
{
    char temporary[NAME_SIZE], current[NAME_SIZE];

    if (new_name(temporary, err) < 0)
        return -1;
    name_current(identity, current);
    if (symlinkat(name, images, temporary) < 0 || renameat(images, temporary, images, current) < 0)
        return error_sys(err, "make the host image current");
    return 0;
}

/* Removes an image unless somebody holds it.  It loses its name first, so that nobody who waits
 * for the lock, and nobody after a crash in the middle, takes a half of it. */
static void remove_unused(int images, const char *name)
{
    autoclose int fd = openat(images, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    char temporary[NAME_SIZE];
    struct error ignored;

    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || new_name(temporary, &ignored) < 0)
        return;
    if (renameat(images, name, images, temporary) == 0)
        (void)store_remove_tree(images, temporary, &ignored);
}

/* A stamp is touched when it is checked. */
static bool was_used(int images, const char *name)
{
    autofree char *stamp = text_format("%s/stamp", name);
    struct timespec now;
    struct stat found;

    clock_gettime(CLOCK_REALTIME, &now);
    return fstatat(images, stamp, &found, AT_SYMLINK_NOFOLLOW) == 0 &&
           found.st_mtim.tv_sec > now.tv_sec - UNUSED_S;
}

/* Which images are current for somebody who still uses them; forgets the others. */
static void list_current(int images, const struct strings *entries, struct strings *out)
{
    for (size_t i = 0; i < entries->len; i++) {
        char name[NAME_SIZE];

        if (!text_starts(entries->items[i], "for-"))
            continue;
        if (read_current(images, entries->items[i], name) && was_used(images, name))
            strings_add(out, name);
        else
            (void)unlinkat(images, entries->items[i], 0);
    }
}

static void sweep(int images)
{
    struct names there = NAMES_NONE;
    struct strings current = STRINGS_NONE;

    names_read(images, &there);
    list_current(images, &there.sorted, &current);
    for (size_t i = 0; i < there.sorted.len; i++) {
        const char *name = there.sorted.items[i];

        if ((text_starts(name, "host-") || text_starts(name, "new-")) && !strings_have(&current, name))
            remove_unused(images, name);
    }
    strings_free(&there.sorted);
    strings_free(&current);
}

static int renew(const struct host *host, const struct text *identity, int images, int etc, struct error *err)
{
    struct recipe recipe = { .host = host, .files = ETCFILES_NONE };
    int result = write_recipe(&recipe, identity, etc, err);

    if (result == 0) {
        /* The same sources under another date of /etc: only the stamp is new. */
        autoclose int image = lock_image(images, recipe.name, LOCK_SH);

        result = image < 0 ? build(&recipe, images, etc, err) : write_stamp(image, &recipe.stamp, err);
    }
    if (result == 0)
        result = make_current(images, identity, recipe.name, err);
    if (result == 0)
        sweep(images);
    etcfiles_free(&recipe.files);
    text_free(&recipe.stamp);
    return result;
}

int image_host_root(const struct host *host, struct image_check *later, char **out, struct error *err)
{
    autoclose int images = open_images(host, err), etc = -1;
    autotext struct text identity = TEXT_NONE;
    char name[NAME_SIZE];

    if (images < 0)
        return -1;
    etc = open("/etc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (etc < 0)
        return error_sys(err, "open /etc");
    image_files_identity(host, &identity);
    for (int i = 0; i < TRIES; i++) {
        if (use_current(images, &identity, etc, later, name)) {
            *out = text_format("%s/images/%s/root", host->state, name);
            return 0;
        }
        if (renew(host, &identity, images, etc, err) < 0)
            return error_while(err, "make the host image");
    }
    return error_set(err, ERROR_SYSTEM, "/etc changes faster than it can be copied; try again");
}

/* --- trees over it --------------------------------------------------------------------------- */

static const struct {
    const char *path;
    bool needed;
} system_trees[] = {
    { "/usr", true },     { "/bin", false },   { "/sbin", false },
    { "/lib", false },    { "/lib32", false }, { "/lib64", false },
    { "/libx32", false }, { "/opt", false },   { "/var/lib/dpkg", false },
};

static bool is_empty(int dir)
{
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autoclosedir DIR *entries = fd < 0 ? NULL : fdopendir(fd);
    int count = 0;

    if (fd >= 0 && !entries)
        close(fd);
    while (entries && count <= 2 && readdir(entries))
        count++;
    return count <= 2;
}

int image_host_trees(const struct host *host, struct trees *trees, struct error *err)
{
    enum tree_mode mode = host->root ? TREE_COW : TREE_RO;

    for (size_t i = 0; i < ARRAY_LEN(system_trees); i++) {
        autoplace struct place place = PLACE_NONE;
        const char *path = system_trees[i].path;
        bool needed = system_trees[i].needed;
        struct stat look;
        /* Where it is a link, the root of the image has the same link. */
        bool there = lstat(path, &look) == 0 && S_ISDIR(look.st_mode) &&
                     place_open(AT_FDCWD, path, &place) == 0 && strcmp(place.path, path) == 0;

        if (there && (needed || !is_empty(place.fd)))
            trees_add(trees, &place, path, mode, TREE_WHY_IMAGE);
        else if (needed)
            return error_set(err, ERROR_UNSUPPORTED, "this machine has no %s to show inside; use --image DIR",
                             path);
    }
    return 0;
}
