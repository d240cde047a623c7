#include "keeper/trust_layer.h"

#include "base/array.h"
#include "base/error.h"
#include "base/file.h"
#include "base/own.h"
#include "base/text.h"
#include "net/jks.h"
#include "store/authorities.h"
#include "store/store.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUNDLE_MAX = 8 << 20, STAMP_MAX = PATH_MAX };

enum content { BUNDLE, OURS, JAVA, CONTENTS };

/* Where programs look.  Without `always`, only if the image has it. */
static const struct place_of {
    const char *path;
    enum content content;
    bool always;
} places[] = {
    { TRUST_EVERYBODY, BUNDLE, true },
    { TRUST_OURS, OURS, true },
    { "/etc/ssl/certs/ca-certificates.crt", BUNDLE, true },
    { "/etc/pki/tls/certs/ca-bundle.crt", BUNDLE, false },
    { "/etc/pki/tls/cert.pem", BUNDLE, false },
    { "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", BUNDLE, false },
    { "/etc/ssl/ca-bundle.pem", BUNDLE, false },
    { "/etc/ssl/cert.pem", BUNDLE, false },
    { "/etc/ssl/certs/java/cacerts", JAVA, false },
    { "/etc/pki/ca-trust/extracted/java/cacerts", JAVA, false },
    { "/etc/pki/java/cacerts", JAVA, false },
};

int trust_roots(void)
{
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        bool ours = path_within(places[i].path, "/etc/cove-ca");
        autofree char *real = ours || places[i].content != BUNDLE ? NULL : realpath(places[i].path, NULL);
        int fd = real ? open(real, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1;

        if (fd >= 0)
            return fd;
    }
    return -1;
}

struct laying {
    int image, layer;
    bool host; /* the image is made of the host: its directories are all alike */
    struct text contents[CONTENTS];
    const char *laid[CONTENTS]; /* where a content already is: others are links to it */
};

/* Of every place what is there now; and which boot it is, because what was made before the machine stopped may
 * not all be on the disk. */
void trust_stamp(int image, struct text *out)
{
    autofree char *boot = file_text(AT_FDCWD, "/proc/sys/kernel/random/boot_id", 64);
    struct stat found;

    text_addf(out, "1 %s %.36s", COVE_VERSION, boot ? boot : "");
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        if (fstatat(image, places[i].path + 1, &found, 0) == 0)
            text_addf(out, " %" PRIu64 ":%" PRIi64 ":%" PRIi64 ".%ld", (uint64_t)found.st_ino,
                      (int64_t)found.st_size, (int64_t)found.st_mtim.tv_sec, found.st_mtim.tv_nsec);
        else
            text_add(out, " -");
}

bool trust_is_current(int dir, const char *link, const struct text *stamp)
{
    char held[STAMP_MAX];
    ssize_t len = readlinkat(dir, link, held, sizeof held);

    return len == (ssize_t)stamp->len && memcmp(held, stamp->data, stamp->len) == 0;
}

/* One directory of the layer, like the image's: it lends that one its attributes.  1: there it is none. */
static int lay_directory(const struct laying *laying, const char *path)
{
    autoclose int below = sys_openat2(laying->image, path, O_PATH | O_DIRECTORY,
                                      RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
    struct stat status = { .st_mode = 0755, .st_uid = geteuid(), .st_gid = getegid() };

    if (below < 0 && errno != ENOENT)
        return 1;
    if (below >= 0 && !laying->host && fstat(below, &status) < 0)
        return -1;
    if (mkdirat(laying->layer, path, 0700) < 0)
        return errno == EEXIST ? 0 : -1;
    if (geteuid() == 0 && fchownat(laying->layer, path, status.st_uid, status.st_gid, AT_SYMLINK_NOFOLLOW) < 0)
        return -1;
    return fchmodat(laying->layer, path, status.st_mode & 07777, 0);
}

static int lay_directories(const struct laying *laying, const char *path)
{
    autofree char *part = text_copy(path);
    int result = 0;

    for (char *slash = strchr(part, '/'); slash && result == 0; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        result = lay_directory(laying, part);
        *slash = '/';
    }
    return result;
}

/* A link is replaced by what it would lead to. */
static bool is_wanted(const struct laying *laying, const struct place_of *place)
{
    struct stat found;

    if (fstatat(laying->image, place->path + 1, &found, AT_SYMLINK_NOFOLLOW) < 0)
        return place->always && errno == ENOENT;
    return S_ISREG(found.st_mode) || S_ISLNK(found.st_mode);
}

static int write_file(int dir, const char *path, const struct text *content)
{
    autoclose int fd = openat(dir, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd < 0 || write(fd, content->data, content->len) != (ssize_t)content->len)
        return -1;
    return fchmod(fd, 0644);
}

/* Java's takes longest, so it is made only for an image that has one. */
static const struct text *content_of(struct laying *laying, enum content kind)
{
    const struct text *bundle = &laying->contents[BUNDLE];
    struct text *content = &laying->contents[kind];

    if (kind == JAVA && !content->len && !jks_write(bundle->data, bundle->len, content))
        return NULL;
    return content;
}

static int lay_place(struct laying *laying, const struct place_of *place, struct error *err)
{
    const char *path = place->path + 1, **laid = &laying->laid[place->content];
    int parents = is_wanted(laying, place) ? lay_directories(laying, path) : 1;
    const struct text *content = parents == 0 ? content_of(laying, place->content) : NULL;

    if (parents > 0 || (parents == 0 && !content))
        return 0;
    if (parents < 0 || (*laid ? linkat(laying->layer, *laid, laying->layer, path, 0)
                              : write_file(laying->layer, path, content)) < 0)
        return error_sys(err, "write %s", place->path);
    *laid = path;
    return 0;
}

/* For OpenSSL without variables, which looks into a directory. */
static int lay_by_number(const struct laying *laying, const char *authority, struct error *err)
{
    autofree char *name = text_format("etc/ssl/certs/%08lx.0", strtoul(authority + 1, NULL, 16));

    if (*authority != '#' || !laying->laid[OURS] ||
        faccessat(laying->layer, "etc/ssl/certs", F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    return linkat(laying->layer, laying->laid[OURS], laying->layer, name, 0) < 0
               ? error_sys(err, "write /%s", name)
               : 0;
}

static int lay_all(struct laying *laying, const char *authority, struct error *err)
{
    const char *certificate = strstr(authority, "-----BEGIN CERTIFICATE-----");
    autoclose int fd = trust_roots();
    autofree char *roots = file_rest(fd, BUNDLE_MAX);
    int result = 0;

    if (!certificate)
        return error_set(err, ERROR_INVALID, "the sandbox's authority has no certificate");
    text_add(&laying->contents[OURS], certificate);
    text_add(&laying->contents[BUNDLE], certificate);
    text_add(&laying->contents[BUNDLE], roots ? "\n" : "");
    text_add(&laying->contents[BUNDLE], roots ? roots : "");
    for (size_t i = 0; i < ARRAY_LEN(places) && result == 0; i++)
        result = lay_place(laying, &places[i], err);
    if (result == 0)
        result = lay_by_number(laying, authority, err);
    for (size_t i = 0; i < CONTENTS; i++)
        text_free(&laying->contents[i]);
    return result;
}

int trust_lay(int trust, int image, bool host, const char *authority, const struct text *stamp,
              struct error *err)
{
    struct laying laying = { .image = image, .host = host };
    struct error ignored;
    autoclose int layer = -1;

    (void)unlinkat(trust, TRUST_STAMP, 0);
    (void)store_remove_tree(trust, TRUST_LAYER, &ignored);
    if (mkdirat(trust, TRUST_LAYER, 0700) == 0 && fchmodat(trust, TRUST_LAYER, 0755, 0) == 0)
        layer = openat(trust, TRUST_LAYER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    laying.layer = layer;
    if (layer < 0)
        return error_sys(err, "make a layer for certificates");
    if (lay_all(&laying, authority, err) < 0)
        return -1;
    /* Last, and without it the layer is made anew. */
    if (host)
        (void)!symlinkat(text_string(stamp), trust, TRUST_STAMP);
    return 0;
}
