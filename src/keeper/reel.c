#include "keeper/reel.h"

#include "base/error.h"
#include "base/file.h"
#include "base/own.h"
#include "base/text.h"
#include "box/tree.h"
#include "gateway/tape.h"
#include "spec/spec.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

void reel_close(struct reel *reel)
{
    own_close(&reel->record);
    own_close(&reel->tape);
    *reel = REEL_NONE;
}

/* --- the record --- */

int reel_outside(const char *path, const struct trees *trees, struct error *err)
{
    const char *slash = strrchr(path, '/');
    autofree char *parent = text_format("%.*s", slash == path ? 1 : (int)(slash - path), path);
    char real[PATH_MAX];

    if (!realpath(parent, real))
        return error_sys(err, "open %.200s", parent);
    for (size_t i = 0; i < trees->len; i++) {
        const struct tree *tree = &trees->items[i];

        if (!path_within(real, tree->source) && !(tree->origin && path_within(real, tree->origin)))
            continue;
        error_set(err, ERROR_REFUSED, "%.200s lies in %.200s, which is seen inside", path, tree->source);
        return error_hint(err, "it is for you: name a file elsewhere");
    }
    return 0;
}

/* One that was there before. */
static int open_again(const char *path, struct error *err)
{
    autoclose int fd = open(path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat info;

    if (fd < 0)
        return error_sys(err, "open %.200s", path);
    if (fstat(fd, &info) < 0)
        return error_sys(err, "look at %.200s", path);
    if (!S_ISREG(info.st_mode) || info.st_nlink != 1 || info.st_uid != geteuid() || (info.st_mode & 077))
        return error_set(err, ERROR_REFUSED, "%.200s is not the file that this sandbox has made", path);
    return steal_fd(&fd);
}

static int open_record(const char *path, bool again, struct error *err)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd >= 0)
        return fd;
    if (errno == EEXIST && again)
        return open_again(path, err);
    return errno == EEXIST
               ? error_set(err, ERROR_REFUSED, "%.200s is there already, and no record goes over it", path)
               : error_sys(err, "make %.200s", path);
}

/* --- what is served --- */

static int open_source(const char *path, size_t *size, struct error *err)
{
    autoclose int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct stat info;

    if (fd < 0)
        return error_sys(err, "open %.200s", path);
    if (fstat(fd, &info) < 0)
        return error_sys(err, "look at %.200s", path);
    if (!S_ISREG(info.st_mode) || info.st_size > TAPE_BYTES_MAX)
        return error_set(err, ERROR_REFUSED, "%.200s is no file of at most %d MB", path, TAPE_BYTES_MAX >> 20);
    *size = (size_t)info.st_size;
    return steal_fd(&fd);
}

static int read_whole(int fd, const char *path, size_t size, struct text *out, struct error *err)
{
    int more = file_add_rest(fd, size, out);

    if (more < 0)
        return error_sys(err, "read %.200s", path);
    return more ? error_set(err, ERROR_REFUSED, "%.200s grew while it was read", path) : 0;
}

int reel_load(const char *path, struct text *bytes, struct tape *tape, struct error *err)
{
    size_t size = 0;
    autoclose int fd = open_source(path, &size, err);

    if (fd < 0 || read_whole(fd, path, size, bytes, err) < 0)
        return -1;
    if (tape_read(text_string(bytes), bytes->len, tape, err) < 0)
        return error_while(err, "%.200s", path);
    return tape->len ? 0
                     : error_set(err, ERROR_INVALID,
                                 "%.200s: there is no exchange in it, as --record writes them", path);
}

/* A copy, so that what is served is what was looked at. */
static int open_tape(const char *path, struct reel *reel, struct error *err)
{
    autotext struct text bytes = TEXT_NONE;
    autotape struct tape tape = TAPE_NONE;

    if (reel_load(path, &bytes, &tape, err) < 0)
        return -1;
    reel->broken = tape.broken;
    reel->first_bad = tape.first_bad;
    reel->tape = sys_sealed_memfd("cove-tape", bytes.data, bytes.len);
    return reel->tape < 0 ? error_sys(err, "make a copy of %.200s", path) : 0;
}

int reel_open(const struct spec *spec, const struct trees *trees, bool again, struct reel *out,
              struct error *err)
{
    *out = REEL_NONE;
    out->secrets = spec->record_secrets;
    if (spec->record && spec->replay)
        return error_set(err, ERROR_INVALID,
                         "--record and --replay: what is served from a record is in one already");
    if (spec->replay && open_tape(spec->replay, out, err) < 0)
        return error_while(err, "--replay");
    if (!spec->record)
        return 0;
    if (reel_outside(spec->record, trees, err) < 0 || (out->record = open_record(spec->record, again, err)) < 0)
        return error_while(err, "--record");
    return 0;
}
