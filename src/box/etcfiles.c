#include "box/etcfiles.h"

#include "base/array.h"
#include "base/error.h"
#include "base/glob.h"
#include "base/own.h"
#include "base/text.h"
#include "sys/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

enum {
    FILES_MAX = 20000,
    FILE_SIZE_MAX = 8 << 20,
    DEPTH_MAX = 16,
};

/* What is shown, with everything below it.  Here because programs of /usr do not work, or look
 * different, without it; never because it is harmless.  Not here: passwd, group, hosts and the
 * like (the image has its own), and what often carries a password though all may read it: pip.conf,
 * npmrc, gitconfig, environment, apt, fstab, mail and print systems. */
static const char *const shown[] = {
    /* shells and terminals */
    "bash.bashrc", "bash_completion", "bash_completion.d", "bashrc", "csh.*", "fish", "inputrc", "profile",
    "profile.d", "shells", "terminfo", "DIR_COLORS*", "zsh", "zshrc", "zshenv", "zprofile", "screenrc",
    "tmux.conf", "nanorc", "vim", "vimrc", "virc", "emacs", "less*", "manpath.config", "man_db.conf", "groff",
    "htoprc",
    /* the dynamic linker and libraries */
    "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ld-musl-*.path", "ld-musl-*.d", "gai.conf", "host.conf",
    "gss", "crypto-policies", "gnutls", "vulkan", "OpenCL", "glvnd", "drirc",
    /* the system's name, time and language */
    "alternatives", "debian_version", "fedora-release", "redhat-release", "system-release*", "alpine-release",
    "arch-release", "SuSE-release", "os-release", "lsb-release", "issue", "localtime", "timezone", "locale*",
    "default/locale", "vconsole.conf", "X11/locale", "X11/rgb.txt", "X11/xkb", "X11/fonts", "X11/cursors",
    /* tables of numbers and kinds */
    "ethertypes", "networks", "protocols", "rpc", "services", "netconfig", "magic", "magic.mime", "mailcap",
    "mime.types", "xattr.conf", "papersize", "paperspecs", "mke2fs.conf", "login.defs", "rmt",
    /* certificates; never keys */
    "ca-certificates", "ca-certificates.conf", "pki/ca-trust", "pki/tls/certs", "pki/tls/cert.pem",
    "pki/tls/openssl.cnf", "pki/java", "pki/nssdb", "ssl/certs", "ssl/openssl.cnf", "ssl/cert.pem",
    "ssl/ct_log_list.cnf",
    /* packages and building */
    "dpkg/dpkg.cfg*", "dpkg/origins", "dpkg/shlibs*", "dpkg/buildflags.conf", "debconf.conf", "rpm",
    "pacman.conf", "adduser.conf", "deluser.conf", "ucf.conf", "perl", "python", "python2*", "python3*",
    "java*", "nodejs", "node", "php.ini", "php.d", "php/*/cli", "php/*/mods-available", "ruby", "lua", "R",
    "maven", "ant", "ant.d", "gradle", "scala", "clojure", "erlang", "elixir", "haskell-packages", "opam",
    "texmf", "gdb", "debuginfod", "gprofng.rc", "ccache.conf", "emscripten", "sgml", "xml",
    "dictionaries-common", "hunspell", "gtk-2.0", "gtk-3.0", "gtk-4.0", "pango", "wgetrc", "fonts",
    "ImageMagick*", "ghostscript", "xdg", "chromium", "chromium.d"
};

/* Left out wherever it appears below one of those: names under which people keep logins in
 * directories that are otherwise harmless (/etc/profile.d/proxy.sh). */
static const char *const left_out[] = { "*proxy*",       "*secret*", "*credential*", "*passw*",
                                        "*token*",       "*.key",    "*_key",        "private",
                                        "settings*.xml", "*.keytab", "*.dpkg-old",   "*.dpkg-new",
                                        "*.dpkg-dist",   "*~" };

static enum glob_place judge(const char *path, const char *name)
{
    enum glob_place best = GLOB_NO;

    for (size_t i = 0; i < ARRAY_LEN(left_out); i++)
        if (glob_match(left_out[i], name))
            return GLOB_NO;
    for (size_t i = 0; i < ARRAY_LEN(shown) && best < GLOB_YES; i++) {
        enum glob_place where = glob_compare(shown[i], path);

        best = where > best ? where : best;
    }
    return best;
}

static bool everybody_reads(const struct stat *found)
{
    mode_t needed = S_ISDIR(found->st_mode) ? S_IROTH | S_IXOTH : S_IROTH;

    return S_ISLNK(found->st_mode) || (found->st_mode & needed) == needed;
}

struct scan {
    struct etcfiles *files;
    struct text *stamp;
    struct text path; /* of the directory we are in, below /etc */
    int depth;
};

/* A link is never looked at again: it cannot change, only be replaced, and then its directory does. */
static void record(struct scan *scan, const struct stat *found)
{
    const char *path = text_string(&scan->path);

    *array_add(scan->files) = (struct etcfile){ .path = text_copy(path), .mode = found->st_mode };
    text_addf(scan->stamp, "%c%" PRIu64 " %" PRIi64 " %" PRIi64 " %ld %s",
              S_ISDIR(found->st_mode)   ? 'd'
              : S_ISLNK(found->st_mode) ? 'l'
                                        : 'f',
              (uint64_t)found->st_ino, (int64_t)found->st_size, (int64_t)found->st_ctim.tv_sec,
              found->st_ctim.tv_nsec, path);
    text_add_bytes(scan->stamp, "", 1);
}

static int scan_directory(struct scan *scan, int dir, struct error *err);

static int scan_entry(struct scan *scan, int dir, const char *name, struct error *err)
{
    enum glob_place where = judge(text_string(&scan->path), name);
    struct stat found;

    if (where == GLOB_NO || fstatat(dir, name, &found, AT_SYMLINK_NOFOLLOW) < 0 || !everybody_reads(&found))
        return 0;
    if (scan->files->len >= FILES_MAX)
        return error_set(err, ERROR_UNSUPPORTED, "more than %d files in /etc", FILES_MAX);
    if (S_ISDIR(found.st_mode) && scan->depth < DEPTH_MAX) {
        record(scan, &found);
        int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? 0 : scan_directory(scan, fd, err);
    }
    if (where != GLOB_ABOVE &&
        (S_ISLNK(found.st_mode) || (S_ISREG(found.st_mode) && found.st_size <= FILE_SIZE_MAX)))
        record(scan, &found);
    return 0;
}

/* Owns `dir`. */
static int scan_directory(struct scan *scan, int dir, struct error *err)
{
    autoclosedir DIR *entries = fdopendir(dir);
    size_t before = scan->path.len;
    int result = 0;

    if (!entries) {
        close(dir);
        return error_sys(err, "read /etc/%.200s", text_string(&scan->path));
    }
    scan->depth++;
    for (const struct dirent *entry; result == 0 && (entry = sys_next_entry(entries));) {
        text_addf(&scan->path, "%s%s", before ? "/" : "", entry->d_name);
        result = scan_entry(scan, dir, entry->d_name, err);
        text_cut(&scan->path, before);
    }
    scan->depth--;
    return result;
}

int etcfiles_scan(int etc, struct etcfiles *out, struct text *stamp, struct error *err)
{
    struct scan scan = { .files = out, .stamp = stamp };
    int fd = openat(etc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat found;

    if (fd < 0 || fstat(fd, &found) < 0) {
        error_sys(err, "read /etc");
        own_close(&fd);
        return -1;
    }
    record(&scan, &found);
    int result = scan_directory(&scan, fd, err);
    text_free(&scan.path);
    return result;
}

void etcfiles_free(struct etcfiles *files)
{
    for (size_t i = 0; i < files->len; i++)
        free(files->items[i].path);
    free(files->items);
    *files = ETCFILES_NONE;
}

/* `record` is one of the stamp, without its first letter. */
static bool is_unchanged(int etc, const char *record)
{
    char *rest;
    uint64_t inode = strtoull(record, &rest, 10);
    int64_t size = strtoll(rest, &rest, 10), seconds = strtoll(rest, &rest, 10);
    long nanoseconds = strtol(rest, &rest, 10);
    struct statx now;

    if (*rest++ != ' ' || statx(etc, rest, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
                                STATX_INO | STATX_SIZE | STATX_CTIME, &now) < 0)
        return false;
    return now.stx_ino == inode && (int64_t)now.stx_size == size && now.stx_ctime.tv_sec == seconds &&
           (long)now.stx_ctime.tv_nsec == nanoseconds;
}

bool etcfiles_unchanged(int etc, const char *stamp, size_t len, bool all)
{
    const char *at = stamp, *end = stamp + len;

    if (!len || end[-1] != '\0')
        return false;
    for (; at < end; at += strlen(at) + 1)
        if (!*at || ((*at == 'd' || (all && *at == 'f')) && !is_unchanged(etc, at + 1)))
            return false;
    return true;
}

static int copy_content(int from, int to)
{
    ssize_t sent;

    while ((sent = sendfile(to, from, NULL, FILE_SIZE_MAX)) > 0)
        continue;
    return sent < 0 ? -1 : 0;
}

/* The mode is looked at once more, on the handle: between scan and copy a file may have been
 * closed to others. */
static int copy_file(int etc, const char *path, int into)
{
    autoclose int from = sys_open_beneath(etc, path, O_RDONLY | O_NONBLOCK);
    autoclose int to = -1;
    struct stat found;

    if (from < 0 || fstat(from, &found) < 0 || !S_ISREG(found.st_mode) || !everybody_reads(&found))
        return 0; /* gone meanwhile: the next start sees another stamp */
    to = openat(into, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (to < 0 || copy_content(from, to) < 0)
        return -1;
    return fchmod(to, found.st_mode & 0111 ? 0755 : 0644);
}

static int copy_link(int etc, const char *path, int into)
{
    char target[PATH_MAX];
    ssize_t len = readlinkat(etc, path, target, sizeof target - 1);

    if (len < 0)
        return 0;
    target[len] = '\0';
    return symlinkat(target, into, path);
}

static int copy_one(int etc, const struct etcfile *file, int into)
{
    if (S_ISREG(file->mode))
        return copy_file(etc, file->path, into);
    if (S_ISLNK(file->mode))
        return copy_link(etc, file->path, into);
    if (mkdirat(into, file->path, 0755) < 0)
        return -1;
    return fchmodat(into, file->path, 0755, 0);
}

int etcfiles_copy(int etc, const struct etcfiles *files, int into, struct error *err)
{
    for (size_t i = 0; i < files->len; i++)
        if (*files->items[i].path && copy_one(etc, &files->items[i], into) < 0)
            return error_sys(err, "copy /etc/%.200s", files->items[i].path);
    return 0;
}
