#include "keeper/files_tree.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/own.h"
#include "inside/lay.h"
#include "inside/tree_send.h"
#include "keeper/files_notes.h"
#include "keeper/files_tar.h"
#include "keeper/files_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>

/* One copy under way: who counts differs by direction. */
struct under_way {
    struct files *files;
    struct files_copy *copy;
    const uint64_t *count, *bytes;
    bool (*go_on)(void *owner); /* as it was before */
    void *owner;
};

static bool go_on(void *owner)
{
    struct under_way *way = owner;
    struct files_copy *copy = way->copy;

    if (way->go_on && !way->go_on(way->owner))
        return false;
    return !copy->go_on || copy->go_on(copy->owner, *way->count, *way->bytes);
}

static void begin(struct under_way *way, struct files *files, struct files_copy *copy, const uint64_t *count,
                  const uint64_t *bytes)
{
    *way = (struct under_way){ files, copy, count, bytes, files->frames.go_on, files->frames.owner };
    files->frames.go_on = go_on;
    files->frames.owner = way;
}

static void end(struct under_way *way)
{
    way->copy->files = *way->count;
    way->copy->bytes = *way->bytes;
    files_notes_close(way->copy);
    way->files->frames.go_on = way->go_on;
    way->files->frames.owner = way->owner;
}

static void take_own_note(void *owner, const struct files_note *note, const char *path)
{
    (void)files_note_add(owner, note, path);
}

/* --- out of the sandbox --- */

/* What went wrong here, with the errno of who takes the tree; the rest would still come. */
static int refuse(struct files *files, struct error *err)
{
    int number = errno;

    if (number == EBADMSG)
        return files_liar(files, err);
    files->dead = true;
    errno = number;
    return error_sys(err, "copy %.300s", files->path);
}

static int receive_tree(struct files *files, struct tree_reader *reader, struct error *err)
{
    for (;;) {
        struct files_done done;
        struct frame frame;

        if (files_answer(files, &frame, err) < 0)
            return -1;
        if (frame.kind == SAY_OK || frame.kind == SAY_ERROR) {
            if (files_done(files, &frame, &done, err) < 0)
                return -1;
            return tree_is_whole(reader) ? 0 : files_liar(files, err);
        }
        if (tree_read(reader, &frame) < 0)
            return refuse(files, err);
    }
}

static int ask_to_send(struct files *files, const char *path, bool follow, struct error *err)
{
    struct files_request request = { .flags = follow ? FILES_FOLLOW : 0 };

    return files_ask(files, ASK_SEND, request, path, "", err);
}

int files_fetch(struct files *files, const char *path, bool follow, int dir, const char *as,
                struct files_copy *copy, struct error *err)
{
    autofree struct lay *lay = memory_zero(sizeof *lay);
    autofree struct tree_reader *reader = memory_zero(sizeof *reader);
    struct under_way way;

    lay->top = dir;
    lay->as = as;
    lay->into = !as;
    lay->note = take_own_note;
    lay->owner = copy;
    lay_begin(lay);
    reader->sink = &lay_sink;
    reader->owner = lay;
    begin(&way, files, copy, &lay->files, &lay->bytes);

    int result = ask_to_send(files, path, follow, err);

    if (result == 0)
        result = receive_tree(files, reader, err);
    lay_end(lay);
    end(&way);
    return result;
}

int files_fetch_tar(struct files *files, const char *path, bool follow, bool bare, int fd,
                    struct files_copy *copy, struct error *err)
{
    autofree struct tree_reader *reader = memory_zero(sizeof *reader);
    struct files_tar tar = { .fd = fd, .bare = bare, .copy = copy };
    struct under_way way;

    reader->sink = &files_tar_sink;
    reader->owner = &tar;
    begin(&way, files, copy, &tar.files, &tar.bytes);

    int result = ask_to_send(files, path, follow, err);

    if (result == 0)
        result = receive_tree(files, reader, err);
    if (result < 0 && tar.problem)
        error_hint(err, "%s", tar.problem);
    if (result == 0 && files_tar_end(&tar) < 0)
        result = error_sys(err, "write the archive");
    files_tar_free(&tar);
    end(&way);
    return result;
}

/* --- into the sandbox --- */

static int take_note(struct files *files, const struct frame *frame, struct files_copy *copy, struct error *err)
{
    struct files_note note;

    if (frame->length < sizeof note)
        return files_liar(files, err);
    memcpy(&note, frame->bytes, sizeof note);
    if (!files_string(files->name, frame->bytes + sizeof note, frame->length - sizeof note) ||
        !files_note_add(copy, &note, files->name))
        return files_liar(files, err);
    return 0;
}

/* After END: notes, not more than a program that keeps to the order can have, and how it went. */
static int take_outcome(struct files *files, struct files_copy *copy, uint32_t *out_count, struct error *err)
{
    struct files_done done;
    struct frame frame;

    for (unsigned notes = 0;; notes++) {
        if (files_answer(files, &frame, err) < 0)
            return -1;
        if (frame.kind != SAY_NOTE)
            break;
        if (notes > FILES_NOTES_MAX)
            return files_liar(files, err);
        if (take_note(files, &frame, copy, err) < 0)
            return -1;
    }
    if (files_done(files, &frame, &done, err) < 0)
        return -1;
    *out_count = done.count;
    return 0;
}

int files_store(struct files *files, int dir, const char *name, const char *path, bool into,
                struct files_copy *copy, struct error *err)
{
    autofree struct tree_sender *sender = memory_zero(sizeof *sender);
    const char *as = tree_is_name(name, strlen(name)) ? name : "tree";
    struct files_request request = { .flags = into ? FILES_INTO : 0 };
    struct under_way way;
    uint32_t made = 0;

    if (files_ask(files, ASK_TAKE, request, path, "", err) < 0)
        return -1;
    sender->frames = &files->frames;
    sender->id = files->id;
    sender->listens = true;
    begin(&way, files, copy, &sender->files, &sender->bytes);

    int result = tree_send(sender, dir, name, as);

    if (result < 0 && errno != ECANCELED)
        result = files_broken(files, err);
    else if (files_say_end(files, result < 0 ? ECANCELED : 0, err) == 0)
        result = take_outcome(files, copy, &made, err);
    end(&way);
    if (result == 0)
        copy->files = made;
    return result;
}

/* --- a tar into the sandbox --- */

static int send_bytes(struct files *files, int fd, uint64_t *bytes, struct error *err)
{
    enum { SLICE_MS = 100 };
    struct pollfd ready = { .fd = fd, .events = POLLIN };

    while (!frames_has_word(&files->frames)) {
        unsigned char *room = frames_room(&files->frames);
        ssize_t len;

        if (!room)
            return files_broken(files, err);
        while ((len = poll(&ready, 1, SLICE_MS)) == 0 || (len < 0 && errno == EINTR))
            if (!go_on(files->frames.owner)) {
                errno = EINTR;
                return error_sys(err, "read the archive");
            }
        len = read(fd, room, FRAME_MAX);
        if (len < 0)
            return error_sys(err, "read the archive");
        if (len == 0)
            return 0;
        frames_put_data(&files->frames, files->id, (size_t)len);
        *bytes += (uint64_t)len;
    }
    return 0;
}

int files_store_tar(struct files *files, int fd, const char *path, struct files_copy *copy, struct error *err)
{
    uint64_t none = 0, bytes = 0;
    struct under_way way;
    struct error ignored = { 0 };
    uint32_t made = 0;

    if (files_ask(files, ASK_UNTAR, (struct files_request){ 0 }, path, "", err) < 0)
        return -1;
    begin(&way, files, copy, &none, &bytes);

    int sent = send_bytes(files, fd, &bytes, err), result = -1;
    struct error *later = sent < 0 ? &ignored : err;

    if (!files->dead && files_say_end(files, sent < 0 ? ECANCELED : 0, later) == 0)
        result = take_outcome(files, copy, &made, later);
    end(&way);
    copy->files = made;
    return sent < 0 ? -1 : result;
}
