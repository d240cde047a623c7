#include "keeper/files.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/own.h"
#include "inside/tree_read.h"
#include "keeper/files_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>

/* --- the session --- */

static bool does_not_block(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

struct files *files_open(int to, int from, struct error *err)
{
    struct files *files = memory_zero(sizeof *files);

    files->frames = (struct frames){ .in = from, .out = to, .got = files->got, .put = files->put };
    if (does_not_block(to) && does_not_block(from))
        return files;
    error_sys(err, "set up a session on files");
    files_close(files);
    return NULL;
}

void files_close(struct files *files)
{
    close(files->frames.in);
    if (files->frames.out != files->frames.in)
        close(files->frames.out);
    free(files);
}

void files_be_patient(struct files *files, uint64_t patience_ms, bool (*go_on)(void *owner), void *owner)
{
    files->frames.patience_ms = patience_ms;
    files->frames.go_on = go_on;
    files->frames.owner = owner;
}

int files_descriptor(const struct files *files)
{
    return files->frames.in;
}

/* --- requests and answers --- */

int files_liar(struct files *files, struct error *err)
{
    files->dead = true;
    return error_set(err, ERROR_REFUSED, "the program for files in the sandbox said what it was not asked");
}

int files_broken(struct files *files, struct error *err)
{
    if (errno == EBADMSG)
        return files_liar(files, err);
    files->dead = true;
    return error_sys(err, "speak with the program for files in the sandbox");
}

int files_ask(struct files *files, uint32_t kind, struct files_request request, const char *path,
              const char *other, struct error *err)
{
    char paths[2 * FILES_PATH_MAX];

    if (files->dead || files->watches)
        return error_set(err, ERROR_INVALID, "the session on files %s",
                         files->dead ? "is over" : "is watching");
    if (!*path)
        return error_set(err, ERROR_INVALID, "a path must not be empty");
    errno = ENAMETOOLONG;
    if (strlen(path) > FILES_PATH_MAX || strlen(other) > FILES_PATH_MAX)
        return error_sys(err, "%.100s...", path);
    request.path_len = (uint32_t)strlen(path);
    request.other_len = (uint32_t)strlen(other);
    memcpy(paths, path, request.path_len);
    memcpy(paths + request.path_len, other, request.other_len);
    memcpy(files->path, path, request.path_len + 1);
    if (frames_send(&files->frames, kind, ++files->id, &request, sizeof request, paths,
                    request.path_len + request.other_len) < 0 ||
        frames_flush(&files->frames) < 0)
        return files_broken(files, err);
    return 0;
}

int files_answer(struct files *files, struct frame *out, struct error *err)
{
    int got = frames_receive(&files->frames, out);

    if (got < 0)
        return files_broken(files, err);
    if (got == FRAMES_ENDED) {
        files->dead = true;
        return error_set(err, ERROR_SYSTEM, "the program for files in the sandbox has ended");
    }
    return out->id == files->id ? 0 : files_liar(files, err);
}

static int take_error(struct files *files, const struct frame *frame, struct error *err)
{
    struct files_note note;

    if (frame->length < sizeof note)
        return files_liar(files, err);
    memcpy(&note, frame->bytes, sizeof note);
    if (note.why == WHY_FORM)
        return error_set(err, ERROR_INVALID, "what was sent is not whole, or is no tar archive");
    if (note.why != WHY_FAILED || note.number <= 0 || note.number > 4095)
        return files_liar(files, err);
    if (note.number == EBADMSG)
        return error_set(err, ERROR_INVALID, "what was sent is not in order, or is no tar archive");
    errno = note.number;
    return error_sys(err, "%.300s in the sandbox", files->path);
}

int files_done(struct files *files, const struct frame *frame, struct files_done *out, struct error *err)
{
    if (frame->kind == SAY_ERROR)
        return take_error(files, frame, err);
    if (frame->kind != SAY_OK || frame->length != sizeof *out)
        return files_liar(files, err);
    memcpy(out, frame->bytes, sizeof *out);
    return out->status ? files_liar(files, err) : 0;
}

int files_say_end(struct files *files, int status, struct error *err)
{
    struct files_done done = { .status = status };

    if (frames_send(&files->frames, ASK_END, files->id, &done, sizeof done, NULL, 0) < 0)
        return files_broken(files, err);
    return 0;
}

bool files_string(char *out, const unsigned char *bytes, size_t len)
{
    if (len > FILES_PATH_MAX || memchr(bytes, '\0', len))
        return false;
    memcpy(out, bytes, len);
    out[len] = '\0';
    return true;
}

/* A request that is answered by yes or no. */
static int ask_simply(struct files *files, uint32_t kind, struct files_request request, const char *path,
                      const char *other, struct error *err)
{
    struct files_done done;
    struct frame frame;

    if (files_ask(files, kind, request, path, other, err) < 0 || files_answer(files, &frame, err) < 0)
        return -1;
    return files_done(files, &frame, &done, err);
}

int files_make(struct files *files, const char *path, uint32_t mode, bool parents, struct error *err)
{
    struct files_request request = { .mode = mode, .flags = parents ? FILES_PARENTS : 0 };

    return ask_simply(files, ASK_MAKE, request, path, "", err);
}

int files_move(struct files *files, const char *path, const char *to, bool new, struct error *err)
{
    return ask_simply(files, ASK_MOVE, (struct files_request){ .flags = new ? FILES_NEW : 0 }, path, to, err);
}

int files_remove(struct files *files, const char *path, bool recursive, struct error *err)
{
    struct files_request request = { .flags = recursive ? FILES_RECURSIVE : 0 };

    return ask_simply(files, ASK_REMOVE, request, path, "", err);
}

int files_symlink(struct files *files, const char *path, const char *target, struct error *err)
{
    return ask_simply(files, ASK_SYMLINK, (struct files_request){ 0 }, path, target, err);
}

int files_chmod(struct files *files, const char *path, uint32_t mode, struct error *err)
{
    return ask_simply(files, ASK_MODE, (struct files_request){ .mode = mode }, path, "", err);
}

int files_touch(struct files *files, const char *path, struct timespec mtime, bool follow, struct error *err)
{
    struct files_request request = { .flags = follow ? FILES_FOLLOW : 0,
                                     .mtime = mtime.tv_sec,
                                     .nsec = (uint32_t)mtime.tv_nsec };

    return ask_simply(files, ASK_TIMES, request, path, "", err);
}

/* --- looking --- */

static int take_info(struct files *files, const struct frame *frame, struct files_info *out, struct error *err)
{
    struct files_entry entry;

    if (frame->kind != SAY_INFO || frame->length < sizeof entry)
        return files_liar(files, err);
    memcpy(&entry, frame->bytes, sizeof entry);
    if ((uint64_t)entry.name_len + entry.target_len != frame->length - sizeof entry ||
        entry.nsec >= 1000000000 || !files_string(files->name, frame->bytes + sizeof entry, entry.name_len) ||
        !files_string(files->target, frame->bytes + sizeof entry + entry.name_len, entry.target_len))
        return files_liar(files, err);
    *out = (struct files_info){ .mode = entry.mode,
                                .size = entry.size,
                                .mtime = { (time_t)entry.mtime, (long)entry.nsec },
                                .uid = entry.uid,
                                .gid = entry.gid,
                                .target = files->target };
    return 0;
}

int files_stat(struct files *files, const char *path, bool follow, struct files_info *out, struct error *err)
{
    struct files_request request = { .flags = follow ? FILES_FOLLOW : 0 };
    struct files_info info;
    struct files_done done;
    struct frame frame;

    if (files_ask(files, ASK_STAT, request, path, "", err) < 0 || files_answer(files, &frame, err) < 0)
        return -1;
    if (frame.kind == SAY_ERROR)
        return files_done(files, &frame, &done, err);
    if (take_info(files, &frame, &info, err) < 0 || files_answer(files, &frame, err) < 0 ||
        files_done(files, &frame, &done, err) < 0)
        return -1;
    *out = info;
    return 0;
}

int files_list(struct files *files, const char *path, uint64_t most,
               bool (*each)(void *owner, const char *name, const struct files_info *info), void *owner,
               bool *out_more, struct error *err)
{
    bool wanted = true;

    if (files_ask(files, ASK_LIST, (struct files_request){ .length = most }, path, "", err) < 0)
        return -1;
    for (uint64_t count = 0;; count++) {
        struct files_info info;
        struct files_done done = { 0 };
        struct frame frame;

        if (files_answer(files, &frame, err) < 0)
            return -1;
        if (frame.kind == SAY_OK || frame.kind == SAY_ERROR) {
            if (files_done(files, &frame, &done, err) < 0)
                return -1;
            *out_more = done.count != 0 || !wanted;
            return 0;
        }
        if (count == most || take_info(files, &frame, &info, err) < 0 ||
            !tree_is_name(files->name, strlen(files->name)))
            return files_liar(files, err);
        wanted = wanted && each(owner, files->name, &info);
    }
}

/* --- content --- */

int files_read(struct files *files, const char *path, uint64_t offset, uint64_t length,
               int (*take)(void *owner, const void *bytes, size_t len, struct error *err), void *owner,
               struct error *err)
{
    struct files_request request = { .offset = offset, .length = length };

    if (files_ask(files, ASK_READ, request, path, "", err) < 0)
        return -1;
    for (;;) {
        struct files_done done;
        struct frame frame;

        if (files_answer(files, &frame, err) < 0)
            return -1;
        if (frame.kind != TREE_DATA)
            return files_done(files, &frame, &done, err);
        if (frame.length > length)
            return files_liar(files, err);
        length -= frame.length;
        if (take(owner, frame.bytes, frame.length, err) < 0) {
            files->dead = true; /* the rest would still come */
            return -1;
        }
    }
}

/* 0 at the end; -1: `give` failed, or nobody takes it any more (files->dead). */
static int give_all(struct files *files,
                    ssize_t (*give)(void *owner, void *bytes, size_t room, struct error *err), void *owner,
                    struct error *err)
{
    while (!frames_has_word(&files->frames)) {
        unsigned char *room = frames_room(&files->frames);

        if (!room)
            return files_broken(files, err);

        ssize_t len = give(owner, room, FRAME_MAX, err);

        if (len <= 0)
            return (int)len;
        frames_put_data(&files->frames, files->id, (size_t)len);
    }
    return 0;
}

int files_write(struct files *files, const char *path, uint32_t flags, uint32_t mode,
                ssize_t (*give)(void *owner, void *bytes, size_t room, struct error *err), void *owner,
                struct error *err)
{
    struct files_request request = { .flags = flags, .mode = mode };
    struct files_done done;
    struct frame frame;
    struct error ignored = { 0 };

    if (files_ask(files, ASK_WRITE, request, path, "", err) < 0)
        return -1;

    int given = give_all(files, give, owner, err);
    struct error *later = given < 0 ? &ignored : err;

    if (files->dead || files_say_end(files, given < 0 ? ECANCELED : 0, later) < 0 ||
        files_answer(files, &frame, later) < 0 || files_done(files, &frame, &done, later) < 0)
        return -1;
    return given;
}

/* --- watching --- */

static int take_event(struct files *files, const struct frame *frame, struct files_seen *out, struct error *err)
{
    struct files_event event;

    if (frame->kind != SAY_EVENT || frame->length < sizeof event)
        return files_liar(files, err);
    memcpy(&event, frame->bytes, sizeof event);
    if (event.change & ~(uint32_t)CHANGE_FLAGS ||
        !files_string(files->name, frame->bytes + sizeof event, frame->length - sizeof event))
        return files_liar(files, err);
    *out = (struct files_seen){ event.change, event.cookie, files->name };
    return 0;
}

int files_watch(struct files *files, const char *path, bool recursive, struct error *err)
{
    struct files_request request = { .flags = recursive ? FILES_RECURSIVE : 0 };
    struct files_seen seen = { .change = CHANGE_LOST };
    struct frame frame;

    if (files_ask(files, ASK_WATCH, request, path, "", err) < 0)
        return -1;
    while (seen.change & CHANGE_LOST) { /* what cannot be watched comes first, then a word without a change */
        struct files_done done;

        if (files_answer(files, &frame, err) < 0)
            return -1;
        if (frame.kind == SAY_ERROR)
            return files_done(files, &frame, &done, err);
        if (take_event(files, &frame, &seen, err) < 0)
            return -1;
    }
    if (seen.change)
        return files_liar(files, err);
    files->watches = true;
    return 0;
}

static bool has_word_within(const struct files *files, int timeout_ms)
{
    struct pollfd ready = { .fd = files->frames.in, .events = POLLIN };

    return frames_has_word(&files->frames) || poll(&ready, 1, timeout_ms) > 0;
}

int files_watch_next(struct files *files, int timeout_ms, struct files_seen *out, struct error *err)
{
    struct frame frame;

    if (!files->watches || files->dead)
        return error_set(err, ERROR_INVALID, "the session on files watches nothing");
    if (!has_word_within(files, timeout_ms))
        return 0;
    if (files_answer(files, &frame, err) < 0 || take_event(files, &frame, out, err) < 0)
        return -1;
    return 1;
}

/* What had been seen until then still comes, and is forgotten. */
int files_unwatch(struct files *files, struct error *err)
{
    struct files_seen seen;
    struct files_done done;
    struct frame frame;

    if (!files->watches || files->dead)
        return error_set(err, ERROR_INVALID, "the session on files watches nothing");
    if (frames_send(&files->frames, ASK_CANCEL, files->id, NULL, 0, NULL, 0) < 0)
        return files_broken(files, err);
    do {
        if (files_answer(files, &frame, err) < 0)
            return -1;
    } while (frame.kind == SAY_EVENT && take_event(files, &frame, &seen, err) == 0);
    if (files->dead)
        return -1;
    files->watches = false;
    return files_done(files, &frame, &done, err);
}
