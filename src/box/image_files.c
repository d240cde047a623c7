#include "box/image_files.h"

#include "base/array.h"
#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "box/host.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

/* To be raised when a table here or in etcfiles.c changes without a new version of the program. */
#define FORMAT "1"

enum { NOBODY = 65534, APT = 42, TTY = 5 };

static const struct {
    const char *path;
    mode_t mode;
} directories[] = {
    { "dev", 0755 },          { "etc", 0755 },      { "home", 0755 },      { "media", 0755 },
    { "mnt", 0755 },          { "opt", 0755 },      { "proc", 0555 },      { "root", 0700 },
    { "run", 0755 },          { "srv", 0755 },      { "sys", 0555 },       { "tmp", 01777 },
    { "usr", 0755 },          { "var", 0755 },      { "var/cache", 0755 }, { "var/lib", 0755 },
    { "var/lib/dpkg", 0755 }, { "var/log", 0755 },  { "var/mail", 0755 },  { "var/opt", 0755 },
    { "var/spool", 0755 },    { "var/tmp", 01777 },
};

static const struct {
    const char *path, *target;
} links[] = {
    { "etc/mtab", "../proc/self/mounts" },
    { "var/lock", "../run/lock" },
    { "var/run", "../run" },
};

/* Links on a machine with a merged /usr, directories on another. */
static const char *const system_names[] = { "bin", "sbin", "lib", "lib32", "lib64", "libx32" };

static const struct {
    const char *path, *content;
} texts[] = {
    { "etc/hostname", "cove\n" },
    { "etc/hosts", "127.0.0.1\tlocalhost cove\n::1\tlocalhost ip6-localhost ip6-loopback cove\n" },
    { "etc/resolv.conf", "# The sandbox's own; what may be asked is decided outside.\nnameserver 127.0.0.1\n" },
    /* The same in every sandbox: it must tell programs nothing about the machine. */
    { "etc/machine-id", "c0fec0fec0fec0fec0fec0fec0fec0fe\n" },
    { "etc/nsswitch.conf", "passwd: files\ngroup: files\nshadow: files\ngshadow: files\nhosts: files dns\n"
                           "networks: files\nprotocols: files\nservices: files\nethers: files\nrpc: files\n" },
};

/* A colon or a line end would make another entry of it. */
static const char *plain(const char *value, const char *otherwise)
{
    return strpbrk(value, ":\n") ? otherwise : value;
}

static void write_passwd(const struct host *host, struct text *out)
{
    const char *home = plain(host->home, "/"), *shell = plain(host->shell, "/bin/sh");
    bool is_root = host->uid == 0;

    text_addf(out, "root:x:0:0:root:%s:%s\n", is_root ? home : "/root", is_root ? shell : "/bin/sh");
    if (!is_root && host->uid != NOBODY)
        text_addf(out, "%s:x:%u:%u::%s:%s\n", plain(host->name, "user"), (unsigned)host->uid,
                  (unsigned)host->gid, home, shell);
    if (host->uid != APT)
        text_addf(out, "_apt:x:%d:%d::/nonexistent:/usr/sbin/nologin\n", APT, NOBODY);
    text_addf(out, "nobody:x:%d:%d:nobody:/nonexistent:/usr/sbin/nologin\n", NOBODY, NOBODY);
}

static void write_group(const struct host *host, struct text *out)
{
    text_addf(out, "root:x:0:\ntty:x:%d:\n", TTY);
    if (host->gid != 0 && host->gid != TTY && host->gid != NOBODY)
        text_addf(out, "%s:x:%u:\n", plain(host->name, "user"), (unsigned)host->gid);
    text_addf(out, "nogroup:x:%d:\n", NOBODY);
}

/* Where the machine's /NAME leads; "" if it is no link. */
static void read_system_link(const char *name, char target[PATH_MAX])
{
    char path[16] = "/";
    ssize_t len = readlink(strncat(path, name, sizeof path - 2), target, PATH_MAX - 1);

    target[len > 0 ? len : 0] = '\0';
}

/* The boot id is part of it instead of a sync: what was not on disk when the machine stopped is
 * never taken for whole. */
static void add_boot(struct text *out)
{
    autoclose int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    char id[64];
    ssize_t len = fd < 0 ? 0 : read(fd, id, sizeof id);

    if (len > 0)
        text_add_bytes(out, id, (size_t)len);
}

void image_files_identity(const struct host *host, struct text *out)
{
    char target[PATH_MAX];

    text_addf(out, "cove %s format %s\n%u %u %s %s %s\n", COVE_VERSION, FORMAT, (unsigned)host->uid,
              (unsigned)host->gid, host->name, host->home, host->shell);
    for (size_t i = 0; i < ARRAY_LEN(system_names); i++) {
        read_system_link(system_names[i], target);
        text_addf(out, "%s=%s\n", system_names[i], target);
    }
    add_boot(out);
}

/* The umask of whoever started us must not decide what can be read inside. */
static int make_directory(int root, const char *path, mode_t mode, struct error *err)
{
    if (mkdirat(root, path, 0700) < 0 || fchmodat(root, path, mode, 0) < 0)
        return error_sys(err, "make /%s", path);
    return 0;
}

static int make_text(int root, const char *path, const char *content, struct error *err)
{
    autoclose int fd = openat(root, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    size_t len = strlen(content);

    if (fd < 0 || write(fd, content, len) != (ssize_t)len || fchmod(fd, 0644) < 0)
        return error_sys(err, "write /%s", path);
    return 0;
}

static int make_system_names(int root, struct error *err)
{
    char target[PATH_MAX], path[16];
    struct stat found;

    for (size_t i = 0; i < ARRAY_LEN(system_names); i++) {
        read_system_link(system_names[i], target);
        path[0] = '/';
        path[1] = '\0';
        strncat(path, system_names[i], sizeof path - 2);
        if (*target && symlinkat(target, root, system_names[i]) < 0)
            return error_sys(err, "link %s", path);
        if (!*target && stat(path, &found) == 0 && make_directory(root, system_names[i], 0755, err) < 0)
            return -1;
    }
    return 0;
}

/* An empty home to work in.  One that lies where a tree will be mounted is made there, if at all. */
static void make_home(const struct host *host, int root)
{
    autotext struct text path = TEXT_NONE;

    for (const char *at = host->home + strspn(host->home, "/"); *at; at += strspn(at, "/")) {
        size_t len = strcspn(at, "/");

        text_addf(&path, "%s%.*s", path.len ? "/" : "", (int)len, at);
        if (mkdirat(root, path.data, 0755) == 0 && fchmodat(root, path.data, 0755, 0) < 0)
            return;
        at += len;
    }
}

static int make_names(const struct host *host, int root, struct error *err)
{
    autotext struct text passwd = TEXT_NONE, group = TEXT_NONE;

    write_passwd(host, &passwd);
    write_group(host, &group);
    if (make_text(root, "etc/passwd", text_string(&passwd), err) < 0)
        return -1;
    return make_text(root, "etc/group", text_string(&group), err);
}

int image_files_make(const struct host *host, int root, struct error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(directories); i++)
        if (make_directory(root, directories[i].path, directories[i].mode, err) < 0)
            return -1;
    for (size_t i = 0; i < ARRAY_LEN(links); i++)
        if (symlinkat(links[i].target, root, links[i].path) < 0)
            return error_sys(err, "link /%s", links[i].path);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (make_text(root, texts[i].path, texts[i].content, err) < 0)
            return -1;
    if (make_system_names(root, err) < 0 || make_names(host, root, err) < 0)
        return -1;
    make_home(host, root);
    return 0;
}
