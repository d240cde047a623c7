#include "git/shadow.h"

#include "base/error.h"
#include "base/file.h"
#include "base/own.h"
#include "base/text.h"
#include "box/host.h"
#include "box/place.h"
#include "box/plan.h"
#include "git/merged.h"
#include "git/refs.h"
#include "git/repository.h"
#include "keeper/confined.h"
#include "store/contents.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    OBJECTS_MAX = 500000,     /* loose ones that a sandbox wrote */
    ALTERNATES_MAX = 1 << 16, /* bytes of objects/info/alternates */
    SHALLOW_MAX = 16 << 20,   /* bytes of shallow */
    TIMEOUT_MS = 5 * 60 * 1000,
    COMPLAINTS_MAX = 1 << 20, /* bytes */
};

/* What a sandbox wrote, all together. */
#define OBJECT_BYTES_MAX (8ULL << 30)

static const char *const programs[] = { "/usr/bin/git", "/bin/git", "/usr/local/bin/git" };

/* --- making it ------------------------------------------------------------------------------ */

static int make_directories(int dir, struct error *err)
{
    static const char *const names[] = { "git",      "git/objects",   "git/objects/info", "git/objects/pack",
                                         "git/refs", "git/refs/heads" };

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (mkdirat(dir, names[i], 0755) < 0)
            return error_sys(err, "make a directory for git");
    return 0;
}

int shadow_file(const struct shadow *shadow, const char *name, struct error *err)
{
    int fd = openat(shadow->dir.fd, name, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

    return fd < 0 ? error_sys(err, "make a file for git") : fd;
}

char *shadow_read(int fd, size_t *len, struct error *err)
{
    struct stat status;

    if (fstat(fd, &status) < 0) {
        error_sys(err, "read what git found");
        return NULL;
    }

    autofree char *bytes = memory_zero((size_t)status.st_size + 1);

    *len = 0;
    for (ssize_t got; *len < (size_t)status.st_size &&
                      (got = pread(fd, bytes + *len, (size_t)status.st_size - *len, (off_t)*len)) > 0;)
        *len += (size_t)got;
    return steal_ptr(&bytes);
}

int shadow_write(const struct shadow *shadow, const char *name, const char *bytes, size_t len,
                 struct error *err)
{
    autoclose int fd = openat(shadow->git, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);

    if (fd < 0 || file_put(fd, bytes, len) < 0)
        return error_sys(err, "write %s for git", name);
    return 0;
}

static int write_text(const struct shadow *shadow, const char *name, const struct text *text, struct error *err)
{
    return shadow_write(shadow, name, text_string(text), text->len, err);
}

/* The directories that an object directory of the owner's borrows from.  One that is not there helps
 * nobody, here as outside. */
static void add_alternates(struct shadow *shadow, int objects)
{
    autofree char *lines = file_text(objects, "info/alternates", ALTERNATES_MAX);
    char *rest = NULL;

    for (char *line = lines ? strtok_r(lines, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest)) {
        autoplace struct place place = PLACE_NONE;

        if (*line == '#' || shadow->objects_len >= ARRAY_LEN(shadow->objects) ||
            place_open(objects, line, &place) < 0 || !S_ISDIR(place.stat.st_mode))
            continue;
        shadow->objects[shadow->objects_len++] = openat(place.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (shadow->objects[shadow->objects_len - 1] < 0)
            shadow->objects_len--;
    }
}

static int open_owners_objects(struct shadow *shadow, const struct repository *repository, struct error *err)
{
    shadow->objects[0] =
        openat(repository->own.base, "objects", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (shadow->objects[0] < 0)
        return error_sys(err, "open the objects of %.200s", repository->path);
    shadow->objects_len = 1;
    for (size_t i = 0; i < shadow->objects_len; i++)
        add_alternates(shadow, shadow->objects[i]);
    return 0;
}

/* Where the owner's history is cut off; without it git would look for what was never here. */
static int copy_shallow(const struct shadow *shadow, const struct repository *repository, struct error *err)
{
    autofree char *bytes = NULL;
    size_t len;

    if (merged_read(&repository->own, "shallow", SHALLOW_MAX, &bytes, &len) != MERGED_FILE)
        return 0;
    return shadow_write(shadow, "shallow", bytes, len, err);
}

/* Root without rights, which is what a contained root is, cannot read what its owner has closed. */
static int become_owner(struct shadow *shadow, const struct repository *repository, struct error *err)
{
    static const char *const written[] = { "objects", "objects/pack" };
    struct stat owner;

    if (!shadow->host->root || fstat(repository->own.base, &owner) < 0 || owner.st_uid == 0 ||
        owner.st_uid >= ID_INIT || owner.st_gid >= ID_INIT)
        return 0;
    shadow->user = text_format("%u:%u", owner.st_uid, owner.st_gid);
    for (size_t i = 0; i < ARRAY_LEN(written); i++)
        if (fchownat(shadow->git, written[i], owner.st_uid, owner.st_gid, AT_SYMLINK_NOFOLLOW) < 0)
            return error_sys(err, "hand a directory to the owner of %.200s", repository->path);
    return 0;
}

static int fill(struct shadow *shadow, const struct repository *repository, struct error *err)
{
    autotext struct text config = TEXT_NONE, alternates = TEXT_NONE;
    static const char head[] = "ref: refs/heads/none\n";

    if (open_owners_objects(shadow, repository, err) < 0 || become_owner(shadow, repository, err) < 0)
        return -1;
    text_addf(&config, "[core]\n\trepositoryformatversion = %d\n\tbare = true\n", repository->digits == 64);
    if (repository->digits == 64)
        text_add(&config, "[extensions]\n\tobjectformat = sha256\n");
    for (size_t i = 0; i < shadow->objects_len; i++)
        text_addf(&alternates, "/mnt/objects%zu\n", i);
    if (shadow_write(shadow, "HEAD", head, strlen(head), err) < 0 ||
        write_text(shadow, "config", &config, err) < 0 ||
        write_text(shadow, "objects/info/alternates", &alternates, err) < 0)
        return -1;
    return copy_shallow(shadow, repository, err);
}

int shadow_make(const struct host *host, const struct repository *repository, struct shadow *out,
                struct error *err)
{
    *out = SHADOW_NONE;
    out->host = host;
    if (store_create(host->state, &out->dir, err) < 0 || make_directories(out->dir.fd, err) < 0)
        return -1;
    out->git = openat(out->dir.fd, "git", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    out->complaints = shadow_file(out, "complaints", err);
    if (out->git < 0 || out->complaints < 0)
        return error_sys(err, "open a directory for git");
    return fill(out, repository, err);
}

void shadow_remove(struct shadow *shadow)
{
    struct error ignored;

    own_close(&shadow->git);
    own_close(&shadow->complaints);
    free(shadow->user);
    for (size_t i = 0; i < shadow->objects_len; i++)
        own_close(&shadow->objects[i]);
    if (shadow->dir.fd >= 0)
        (void)store_remove(&shadow->dir, &ignored);
    *shadow = SHADOW_NONE;
}

/* --- objects -------------------------------------------------------------------------------- */

struct copying {
    int from, to; /* objects/ of the upper, objects/ of ours */
    size_t count;
    uint64_t bytes;
    struct contents *contents;
    struct error *err;
};

static bool is_hex(const char *text, size_t len)
{
    return strspn(text, "0123456789abcdef") >= len;
}

/* One file of a directory of the upper.  What is no regular file is no object. */
static int copy_file(struct copying *copying, int from, int to, const char *name)
{
    autoclose int in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC), out = -1;
    struct stat status, copied;

    if (in < 0 || fstat(in, &status) < 0 || !S_ISREG(status.st_mode))
        return 0;
    copying->bytes += (uint64_t)status.st_size;
    copying->count++;
    if (copying->bytes > OBJECT_BYTES_MAX || copying->count > OBJECTS_MAX)
        return error_set(copying->err, ERROR_REFUSED,
                         "the sandbox wrote more than %llu GiB or %d git objects; they are left",
                         OBJECT_BYTES_MAX >> 30, OBJECTS_MAX);
    /* What is made shorter meanwhile ends with zeros: git will say that it is none. */
    out = openat(to, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0444);
    if (out < 0 || contents_copy(copying->contents, in, out, &status) < 0)
        return error_sys(copying->err, "copy an object of the sandbox");
    /* Shared with its file system, it is as long as it was at that moment. */
    if (fstat(out, &copied) < 0 || copied.st_size > status.st_size)
        return error_set(copying->err, ERROR_REFUSED, "an object of the sandbox grows while it is copied");
    return 0;
}

static bool is_loose(const char *name)
{
    size_t len = strlen(name);

    return (len == 38 || len == 62) && is_hex(name, len);
}

static bool is_pack(const char *name)
{
    size_t len = text_starts(name, "pack-") ? strspn(name + 5, "0123456789abcdef") : 0;

    return (len == 40 || len == 64) &&
           (strcmp(name + 5 + len, ".pack") == 0 || strcmp(name + 5 + len, ".idx") == 0);
}

static int copy_directory(struct copying *copying, const char *name, bool (*wanted)(const char *name))
{
    struct merged dir = { .base = -1, .upper = -1 };
    autoclose int from = openat(copying->from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), to = -1;
    autostrings struct strings names = STRINGS_NONE;

    if (from < 0)
        return 0;
    dir.base = from;
    if (!merged_list(&dir, OBJECTS_MAX, &names))
        return error_set(copying->err, ERROR_REFUSED, "the sandbox wrote too many git objects");
    if (mkdirat(copying->to, name, 0755) < 0 && errno != EEXIST)
        return error_sys(copying->err, "make a directory for objects");
    to = openat(copying->to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (to < 0)
        return error_sys(copying->err, "open a directory for objects");
    for (size_t i = 0; i < names.len; i++)
        if (wanted(names.items[i]) && copy_file(copying, from, to, names.items[i]) < 0)
            return -1;
    return 0;
}

int shadow_add_objects(struct shadow *shadow, const struct repository *repository, struct error *err)
{
    automerged struct merged objects = MERGED_NONE;
    autoclose int to = openat(shadow->git, "objects", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    __attribute__((cleanup(contents_free))) struct contents contents = { .bytes = 0 };
    struct copying copying = { .to = to, .contents = &contents, .err = err };

    if (to < 0)
        return error_sys(err, "open the directory for objects");
    if (!merged_enter(&repository->merged, "objects", &objects) || objects.upper < 0)
        return 0;
    copying.from = objects.upper;
    for (unsigned first = 0; first < 256; first++) {
        char name[3];

        snprintf(name, sizeof name, "%02x", first);
        if (copy_directory(&copying, name, is_loose) < 0)
            return -1;
    }
    return copy_directory(&copying, "pack", is_pack);
}

/* --- running git ---------------------------------------------------------------------------- */

static bool is_git_here(void)
{
    for (size_t i = 0; i < ARRAY_LEN(programs); i++)
        if (access(programs[i], X_OK) == 0)
            return true;
    return false;
}

int shadow_run(const struct shadow *shadow, const struct shadow_script *script, struct error *err)
{
    /* Memory that a hostile object may take, in KiB; all of git is one process. */
    autofree char *text = text_format("ulimit -d 4194304\n%s", script->text);
    const char *argv[] = { "/bin/sh", "-c", text, "sh", script->words[0], script->words[1], NULL };
    static const char *const env[] = { "PATH=/usr/bin:/bin:/usr/local/bin",
                                       "HOME=/nonexistent",
                                       "LC_ALL=C",
                                       "GIT_DIR=/mnt/git",
                                       "GIT_CONFIG_NOSYSTEM=1",
                                       "GIT_CONFIG_SYSTEM=/dev/null",
                                       "GIT_CONFIG_GLOBAL=/dev/null",
                                       "GIT_ATTR_NOSYSTEM=1",
                                       "GIT_NO_REPLACE_OBJECTS=1",
                                       "GIT_NO_LAZY_FETCH=1",
                                       "GIT_TERMINAL_PROMPT=0",
                                       "GIT_PAGER=cat",
                                       NULL };
    struct confined_tree trees[1 + ARRAY_LEN(shadow->objects)] = { { shadow->git, "", "/mnt/git",
                                                                     script->may_write ? TREE_COW : TREE_RO } };
    char targets[ARRAY_LEN(shadow->objects)][sizeof "/mnt/objects" + 20];
    struct confined confined = { .argv = argv,
                                 .env = env,
                                 .cwd = "/mnt/git",
                                 .user = shadow->user,
                                 .trees = trees,
                                 .tree_count = 1 + shadow->objects_len,
                                 .profile = PROFILE_STRICT,
                                 .timeout_ms = TIMEOUT_MS,
                                 .output_most = script->output_most + COMPLAINTS_MAX,
                                 .in = -1,
                                 .out = script->out,
                                 .err = shadow->complaints };

    if (!is_git_here())
        return error_set(err, ERROR_UNSUPPORTED,
                         "there is no %s on this machine, and without it no commit can be read", programs[0]);
    for (size_t i = 0; i < shadow->objects_len; i++) {
        snprintf(targets[i], sizeof targets[i], "/mnt/objects%zu", i);
        trees[1 + i] = (struct confined_tree){ shadow->objects[i], "", targets[i], TREE_RO };
    }
    if (ftruncate(shadow->complaints, 0) < 0 || lseek(shadow->complaints, 0, SEEK_SET) < 0)
        return error_sys(err, "empty the file for what git says");
    return confined_succeed(shadow->host, &confined, script->doing, err);
}
