#include "inside/tree_read.h"

#include <errno.h>
#include <string.h>

static int wrong(void)
{
    errno = EBADMSG;
    return -1;
}

bool tree_is_name(const char *name, size_t len)
{
    if (len == 0 || len > FILES_NAME_MAX || memchr(name, '/', len) || memchr(name, '\0', len))
        return false;
    return !(name[0] == '.' && (len == 1 || (len == 2 && name[1] == '.')));
}

/* The fixed part of a frame, and the strings behind it. */
static int take_strings(struct tree_reader *reader, const unsigned char *at, size_t name_len, size_t target_len,
                        struct tree_item *out)
{
    if (!tree_is_name((const char *)at, name_len) || target_len > FILES_PATH_MAX ||
        memchr(at + name_len, '\0', target_len))
        return wrong();
    memcpy(reader->name, at, name_len);
    reader->name[name_len] = '\0';
    memcpy(reader->target, at + name_len, target_len);
    reader->target[target_len] = '\0';
    out->name = reader->name;
    out->target = reader->target;
    return 0;
}

static int take_entry(struct tree_reader *reader, const struct frame *frame, struct tree_item *out)
{
    struct files_entry *entry = &out->entry;

    if (frame->length < sizeof *entry)
        return wrong();
    memcpy(entry, frame->bytes, sizeof *entry);
    if ((uint64_t)entry->name_len + entry->target_len != frame->length - sizeof *entry ||
        entry->nsec >= 1000000000)
        return wrong();
    return take_strings(reader, frame->bytes + sizeof *entry, entry->name_len, entry->target_len, out);
}

static int take_note(struct tree_reader *reader, const struct frame *frame, struct tree_item *out)
{
    if (frame->length < sizeof out->note)
        return wrong();
    memcpy(&out->note, frame->bytes, sizeof out->note);
    if (out->note.why < WHY_FAILED || out->note.why >= WHY_MORE ||
        (out->note.why == WHY_FAILED && (out->note.number <= 0 || out->note.number >= 4096)))
        return wrong();
    return take_strings(reader, frame->bytes + sizeof out->note, frame->length - sizeof out->note, 0, out);
}

/* --- one function a kind --- */

static int on_dir(struct tree_reader *reader, struct tree_item *item)
{
    if (reader->depth >= FILES_DEPTH_MAX || item->entry.target_len)
        return wrong();
    reader->depth++;
    return reader->sink->enter(reader->owner, item);
}

static int on_file(struct tree_reader *reader, struct tree_item *item)
{
    uint32_t twin = item->entry.twin;

    if (item->entry.target_len || item->entry.size > INT64_MAX ||
        (twin && (twin != reader->twins + 1 || twin > FILES_TWINS_MAX)))
        return wrong();
    reader->twins += twin != 0;
    reader->in_file = true;
    reader->size = item->entry.size;
    reader->got = 0;
    return reader->sink->file(reader->owner, item);
}

static int on_link(struct tree_reader *reader, struct tree_item *item)
{
    return item->entry.target_len ? reader->sink->link(reader->owner, item) : wrong();
}

static int on_twin(struct tree_reader *reader, struct tree_item *item)
{
    if (item->entry.target_len || !item->entry.twin || item->entry.twin > reader->twins)
        return wrong();
    return reader->sink->twin(reader->owner, item);
}

static int on_entry(struct tree_reader *reader, const struct frame *frame)
{
    struct tree_item item = { 0 };

    if ((reader->begun && !reader->depth) || take_entry(reader, frame, &item) < 0)
        return wrong();
    reader->begun = true;
    switch (frame->kind) {
    case TREE_DIR:
        return on_dir(reader, &item);
    case TREE_FILE:
        return on_file(reader, &item);
    case TREE_LINK:
        return on_link(reader, &item);
    default:
        return on_twin(reader, &item);
    }
}

static int on_left_out(struct tree_reader *reader, const struct frame *frame)
{
    struct tree_item item = { 0 };

    if ((reader->begun && !reader->depth) || take_note(reader, frame, &item) < 0)
        return wrong();
    reader->begun = true;
    return reader->sink->left_out(reader->owner, &item);
}

static int on_leave(struct tree_reader *reader, const struct frame *frame)
{
    if (!reader->depth || frame->length)
        return wrong();
    reader->depth--;
    return reader->sink->leave(reader->owner);
}

/* --- the content of a file --- */

static int on_data(struct tree_reader *reader, const struct frame *frame)
{
    if (frame->length > reader->size - reader->got)
        return wrong();
    reader->got += frame->length;
    return reader->sink->data(reader->owner, frame->bytes, frame->length);
}

static int on_hole(struct tree_reader *reader, const struct frame *frame)
{
    uint64_t len;

    if (frame->length != sizeof len)
        return wrong();
    memcpy(&len, frame->bytes, sizeof len);
    if (len > reader->size - reader->got)
        return wrong();
    reader->got += len;
    return reader->sink->hole(reader->owner, len);
}

static int on_file_end(struct tree_reader *reader, const struct frame *frame)
{
    struct files_done done;

    if (frame->length != sizeof done)
        return wrong();
    memcpy(&done, frame->bytes, sizeof done);
    if (!done.status && reader->got != reader->size)
        return wrong();
    reader->in_file = false;
    return reader->sink->file_end(reader->owner, done.status);
}

static int read_content(struct tree_reader *reader, const struct frame *frame)
{
    switch (frame->kind) {
    case TREE_DATA:
        return on_data(reader, frame);
    case TREE_HOLE:
        return on_hole(reader, frame);
    case TREE_FILE_END:
        return on_file_end(reader, frame);
    default:
        return wrong();
    }
}

int tree_read(struct tree_reader *reader, const struct frame *frame)
{
    if (reader->in_file)
        return read_content(reader, frame);
    switch (frame->kind) {
    case TREE_DIR:
    case TREE_FILE:
    case TREE_LINK:
    case TREE_TWIN:
        return on_entry(reader, frame);
    case TREE_LEFT_OUT:
        return on_left_out(reader, frame);
    case TREE_LEAVE:
        return on_leave(reader, frame);
    default:
        return wrong();
    }
}

bool tree_is_whole(const struct tree_reader *reader)
{
    return reader->begun && !reader->depth && !reader->in_file;
}
