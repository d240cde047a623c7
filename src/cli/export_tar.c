/* Declared outputs as a tar.  Every file is read twice: for the manifest, which comes first, and for the
 * archive; if the second time has another digest, there is no archive. */

#include "base/error.h"
#include "base/own.h"
#include "base/sha256.h"
#include "base/text.h"
#include "changes/space.h"
#include "changes/tar.h"
#include "cli/changed.h"
#include "cli/export.h"
#include "cli/options.h"
#include "git/own.h"
#include "spec/node.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define MANIFEST "MANIFEST.json"

enum { CHUNK = 128 << 10 };

/* A tar has no holes.  So that files of 8 EiB that store nothing keep nobody reading, of holes there may be so
 * much in all, and this many bytes for each that is stored. */
enum { HOLES_FREE = 1 << 30, HOLES_RATIO = 16 };

struct output {
    const struct change *change;
    unsigned char sha256[SHA256_BYTES]; /* of a file */
    uint64_t size;
};

struct outputs {
    struct output *items;
    size_t len, cap;
    char *buffer;
};

/* --- what goes into it --- */

static const char *refusal(const struct change *change)
{
    static const struct {
        unsigned flag;
        const char *why;
    } reasons[] = { { FLAG_SPECIAL, "a device, pipe or socket" },
                    { FLAG_LINK_OUT, "a link that leads out of the workspace" },
                    { FLAG_LINK_ABSOLUTE, "an absolute link" },
                    { FLAG_UNREADABLE, "cannot be read" },
                    { FLAG_TOO_DEEP, "nested too deep" } };

    for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
        if (change->flags & reasons[i].flag)
            return reasons[i].why;
    return strcmp(change->path, MANIFEST) == 0 ? "has the name of the manifest" : NULL;
}

static bool is_excluded(const struct strings *exclude, const char *path)
{
    for (size_t i = 0; i < exclude->len; i++) {
        const char *wanted = exclude->items[i] + (text_starts(exclude->items[i], "./") ? 2 : 0);
        size_t len = strlen(wanted);

        while (len > 0 && wanted[len - 1] == '/')
            len--;
        if (strncmp(path, wanted, len) == 0 && (path[len] == '\0' || path[len] == '/'))
            return true;
    }
    return false;
}

/* 1 if something was refused. */
static int choose(const struct changed *changed, const struct strings *exclude, struct outputs *out)
{
    int refused = 0;

    for (size_t i = 0; i < changed->changes.len; i++) {
        const struct change *change = &changed->changes.items[i];
        autotext struct text shown = TEXT_NONE;

        if (change->new.type == SIDE_NONE || change->kind == CHANGE_REMOVED ||
            git_own_change(change) != GIT_NOT_OWN || is_excluded(exclude, change->path))
            continue;
        if (refusal(change)) {
            text_add_inert(&shown, change->path);
            fprintf(stderr, "cove: %s: %s; leave it out with --exclude\n", text_string(&shown),
                    refusal(change));
            refused = 1;
            continue;
        }
        array_add(out)->change = change;
    }
    return refused;
}

/* --- contents --- */

static bool is_hollow(uint64_t size, uint64_t stored)
{
    return size > HOLES_FREE && (size - HOLES_FREE) / HOLES_RATIO > stored;
}

/* Together: ten thousand files with a hole each are as bad as one.  The largest is named. */
static int check_holes(const struct outputs *outputs, struct error *err)
{
    const struct change *largest = NULL;
    uint64_t size = 0, stored = 0;

    for (size_t i = 0; i < outputs->len; i++) {
        const struct change *change = outputs->items[i].change;

        if (change->new.type != SIDE_FILE)
            continue;
        size = space_sum(size, change->new.size);
        stored = space_sum(stored, change->new.stored);
        if (!largest || change->new.size > largest->new.size)
            largest = change;
    }
    if (!is_hollow(size, stored))
        return 0;
    return error_set(err, ERROR_REFUSED,
                     "the files are nearly all holes: %" PRIu64 " MiB, of which %" PRIu64
                     " are stored; the largest is %.200s; leave it out with --exclude",
                     size >> 20, stored >> 20, largest->path);
}

static int open_file(const struct changed *changed, const char *path, uint64_t *size, struct error *err)
{
    autoclose int fd = sys_openat2(changed->upper, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK,
                                   RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
    struct stat status;

    if (fd < 0 || fstat(fd, &status) < 0)
        return error_sys(err, "open %.200s of the sandbox", path);
    if (!S_ISREG(status.st_mode))
        return error_set(err, ERROR_REFUSED, "%.200s is not a file any more", path);
    if (is_hollow((uint64_t)status.st_size, (uint64_t)status.st_blocks * 512))
        return error_set(err, ERROR_REFUSED, "%.200s is nearly all holes; leave it out with --exclude", path);
    *size = (uint64_t)status.st_size;
    return steal_fd(&fd);
}

static int put(int to, const void *bytes, size_t len, struct error *err)
{
    const char *at = bytes;

    while (len > 0) {
        ssize_t done = write(to, at, len);

        if (done < 0 && errno != EINTR)
            return error_sys(err, "write the archive");
        at += done > 0 ? done : 0;
        len -= done > 0 ? (size_t)done : 0;
    }
    return 0;
}

/* Reads a file to its end, writes it to `to` unless that is -1, and gives its digest and size. */
static int pass_on(const struct changed *changed, const char *path, char *buffer, int to, struct output *seen,
                   struct error *err)
{
    uint64_t size = 0;
    autoclose int fd = open_file(changed, path, &size, err);
    struct sha256 *sha256 = fd < 0 ? NULL : sha256_new();
    ssize_t got = -1;

    seen->size = 0;
    while (fd >= 0 && seen->size <= size && (got = read(fd, buffer, CHUNK)) > 0) {
        sha256_add(sha256, buffer, (size_t)got);
        seen->size += (uint64_t)got;
        if (to >= 0 && put(to, buffer, (size_t)got, err) < 0)
            break;
    }
    sha256_end(sha256, seen->sha256);
    if (seen->size > size)
        return error_set(err, ERROR_REFUSED, "%.200s grows while it is read", path);
    if (fd < 0 || got > 0)
        return -1;
    return got < 0 ? error_sys(err, "read %.200s of the sandbox", path) : 0;
}

static int digest_all(const struct changed *changed, struct outputs *outputs, struct error *err)
{
    for (size_t i = 0; i < outputs->len; i++) {
        struct output *output = &outputs->items[i];

        if (output->change->new.type == SIDE_FILE &&
            pass_on(changed, output->change->path, outputs->buffer, -1, output, err) < 0)
            return -1;
    }
    return 0;
}

/* --- the archive --- */

static void add_removed(const struct changed *changed, const struct strings *exclude, struct node *list)
{
    for (size_t i = 0; i < changed->changes.len; i++) {
        const struct change *change = &changed->changes.items[i];

        if ((change->kind != CHANGE_REMOVED && !change->from) || is_excluded(exclude, change->path))
            continue;
        node_add_bytes(node_add(list, NULL, NODE_MAP, NULL), "path",
                       change->from ? change->from : change->path);
    }
}

static void add_member(const struct output *output, struct node *node)
{
    const struct side *new = &output->change->new;
    autofree char *mode = text_format("%04o", (unsigned)(new->mode & 0777)),
                  *size = text_format("%" PRIu64, output->size);
    char sha256[SHA256_TEXT];

    node_add_bytes(node, "path", output->change->path);
    node_add(node, "type", NODE_STRING, changed_side_name(new->type));
    node_add(node, "mode", NODE_STRING, mode);
    if (new->type == SIDE_FILE) {
        sha256_text(output->sha256, sha256);
        node_add(node, "size", NODE_NUMBER, size);
        node_add(node, "sha256", NODE_STRING, sha256);
    }
    if (new->type == SIDE_LINK)
        node_add_bytes(node, "target", new->target);
}

static void write_manifest(const struct changed *changed, const struct outputs *outputs,
                           const struct strings *exclude, struct text *out)
{
    autonode struct node root = { .kind = NODE_MAP };
    struct node *members;

    node_add(&root, "format", NODE_NUMBER, "1");
    node_add(&root, "sandbox", NODE_STRING, changed->kept->id);
    add_removed(changed, exclude, node_add(&root, "removed", NODE_LIST, NULL));
    members = node_add(&root, "members", NODE_LIST, NULL);
    for (size_t i = 0; i < outputs->len; i++)
        add_member(&outputs->items[i], node_add(members, NULL, NODE_MAP, NULL));
    node_write_json(&root, out);
    text_add(out, "\n");
}

static int put_text(int to, const struct text *text, struct error *err)
{
    return put(to, text_string(text), text->len, err);
}

static int put_padding(int to, uint64_t size, struct error *err)
{
    static const char zeros[TAR_BLOCK];

    return put(to, zeros, tar_padding(size), err);
}

static int put_manifest(int to, const struct text *manifest, struct error *err)
{
    struct tar_member member = { .path = MANIFEST, .mode = 0644, .size = manifest->len };
    autotext struct text header = TEXT_NONE;

    tar_add_header(&member, &header);
    if (put_text(to, &header, err) < 0 || put_text(to, manifest, err) < 0)
        return -1;
    return put_padding(to, manifest->len, err);
}

static int put_output(const struct changed *changed, const struct output *output, char *buffer, int to,
                      struct error *err)
{
    static const enum tar_type types[] = {
        [SIDE_FILE] = TAR_FILE, [SIDE_DIRECTORY] = TAR_DIRECTORY, [SIDE_LINK] = TAR_LINK
    };
    const struct side *new = &output->change->new;
    struct tar_member member = { .path = output->change->path,
                                 .type = types[new->type],
                                 .mode = new->type == SIDE_LINK ? 0777 : new->mode,
                                 .size = output->size,
                                 .mtime = new->mtime.tv_sec,
                                 .target = new->type == SIDE_LINK ? new->target : NULL };
    autotext struct text header = TEXT_NONE;
    struct output again;

    tar_add_header(&member, &header);
    if (put_text(to, &header, err) < 0)
        return -1;
    if (new->type != SIDE_FILE)
        return 0;
    if (pass_on(changed, member.path, buffer, to, &again, err) < 0)
        return -1;
    if (again.size != output->size || memcmp(again.sha256, output->sha256, sizeof again.sha256) != 0)
        return error_set(err, ERROR_REFUSED, "%.200s changed while it was exported", member.path);
    return put_padding(to, output->size, err);
}

static int put_archive(const struct changed *changed, const struct outputs *outputs,
                       const struct strings *exclude, int to, struct error *err)
{
    autotext struct text manifest = TEXT_NONE, end = TEXT_NONE;

    write_manifest(changed, outputs, exclude, &manifest);
    if (put_manifest(to, &manifest, err) < 0)
        return -1;
    for (size_t i = 0; i < outputs->len; i++)
        if (put_output(changed, &outputs->items[i], outputs->buffer, to, err) < 0)
            return -1;
    tar_add_end(&end);
    return put_text(to, &end, err);
}

/* --- where it goes --- */

/* At least: each has a header. */
static uint64_t size_of_archive(const struct outputs *outputs)
{
    uint64_t size = 0;

    for (size_t i = 0; i < outputs->len; i++)
        size = space_sum(size, space_sum(outputs->items[i].size, TAR_BLOCK));
    return size;
}

/* To a file beside it that takes the name when it is whole. */
static int put_file(const struct changed *changed, const struct outputs *outputs,
                    const struct run_options *options, struct error *err)
{
    autofree char *part = text_format("%s.XXXXXX", options->output);
    autoclose int to = mkostemp(part, O_CLOEXEC);
    mode_t mask = umask(0);

    umask(mask);
    if (to < 0)
        return error_sys(err, "make %.200s", options->output);
    if (space_check(to, size_of_archive(outputs), err) == 0 &&
        put_archive(changed, outputs, &options->exclude, to, err) == 0) {
        if (fchmod(to, 0666 & ~mask) == 0 && fsync(to) == 0 && rename(part, options->output) == 0)
            return 0;
        error_sys(err, "write %.200s", options->output);
    }
    (void)unlink(part);
    return -1;
}

static int put_somewhere(const struct changed *changed, const struct outputs *outputs,
                         const struct run_options *options, struct error *err)
{
    bool to_stdout = !options->output || strcmp(options->output, "-") == 0;

    if (!to_stdout)
        return put_file(changed, outputs, options, err);
    if (isatty(STDOUT_FILENO))
        return error_set(err, ERROR_INVALID, "an archive is not for a terminal; say -o FILE");
    return put_archive(changed, outputs, &options->exclude, STDOUT_FILENO, err);
}

int export_tar(const struct changed *changed, const struct run_options *options, struct error *err)
{
    autofree char *buffer = memory_zero(CHUNK);
    struct outputs outputs = { .buffer = buffer };
    int result = choose(changed, &options->exclude, &outputs);

    if (result == 0 && outputs.len == 0)
        result = error_set(err, ERROR_MISSING, "the sandbox made or changed no file there");
    if (result == 0)
        result = check_holes(&outputs, err);
    if (result == 0)
        result = digest_all(changed, &outputs, err);
    if (result == 0)
        result = put_somewhere(changed, &outputs, options, err);
    free(outputs.items);
    return result;
}
