#include "gateway/recorder.h"

#include "base/memory.h"
#include "base/own.h"
#include "gateway/gate.h"
#include "gateway/tape.h"
#include "net/answer.h"
#include "net/head.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of a line, besides its bodies: heads have 48 KB, of which each byte may be three, and fields their names. */
enum { HEADS_MAX = 256 << 10 };

/* What those take that are under way, if nothing more comes: of a body, a byte is at most four thirds of one.
 */
static uint64_t reserved(const struct recorder *recorder)
{
    return gate_leaves_out("record-room") ? 0 : (uint64_t)recorder->under_way * HEADS_MAX + taps_kept() / 2 * 3;
}

/* They may keep what there is room for. */
static void share_room(const struct recorder *recorder)
{
    uint64_t taken = recorder->len + (uint64_t)recorder->under_way * HEADS_MAX;

    if (recorder->fd >= 0 && !gate_leaves_out("record-room"))
        taps_bound(taken < TAPE_BYTES_MAX ? (TAPE_BYTES_MAX - taken) / 3 * 2 : 0);
}

/* In one call, so that a line of somebody who is killed is whole, or the last. */
static void put(struct recorder *recorder, const char *bytes, size_t len)
{
    ssize_t put;

    while ((put = write(recorder->fd, bytes, len)) < 0 && errno == EINTR)
        continue;
    recorder->failed |= put != (ssize_t)len;
    recorder->len += put > 0 ? (uint64_t)put : 0;
}

bool recorder_has_room(const struct recorder *recorder)
{
    return !recorder->failed && recorder->len + reserved(recorder) + TAKE_LINE_MAX <= TAPE_BYTES_MAX;
}

void recorder_begin(struct recorder *recorder, int fd, bool secrets, unsigned generation)
{
    struct stat info = { 0 };

    *recorder = (struct recorder){ .fd = fd, .secrets = secrets };
    if (fd < 0)
        return;
    recorder->failed = fstat(fd, &info) < 0;
    recorder->len = (uint64_t)info.st_size;
    if (generation && recorder_has_room(recorder))
        put(recorder, "\n", 1);
}

/* Fields */

static void add_fields(const struct fields *fields, bool secrets, struct take_message *message)
{
    for (size_t i = 0; i < fields->count; i++) {
        const struct head_field *field = &fields->items[i];
        autofree char *name = text_format("%.*s", (int)field->name.len, field->name.at);
        autofree char *value = text_format("%.*s", (int)field->value.len, field->value.at);

        if (!field_is_ours(field) || part_is(field->name, "content-length"))
            take_add_field(message, name, value, secrets);
    }
}

struct recording *recording_begin(struct recorder *recorder, const struct head *head,
                                  const struct verdict *verdict)
{
    struct recording *recording;

    if (recorder->fd < 0 || !verdict->allowed)
        return NULL;
    recorder->under_way++;
    share_room(recorder);
    recording = memory_zero(sizeof *recording);
    recording->take.host = text_copy(verdict->host.text);
    recording->take.port = verdict->port;
    recording->take.method = text_format("%.*s", (int)head->method.len, head->method.at);
    recording->take.path = text_format("%.*s", (int)head->path.len, head->path.at);
    clock_gettime(CLOCK_REALTIME, &recording->take.time);
    add_fields(&head->fields, recorder->secrets, &recording->take.request);
    tap_begin(&recording->request, true);
    return recording;
}

void recording_answer(struct recording *recording, const struct recorder *recorder, const struct answer *answer)
{
    if (!recording)
        return;
    recording->take.status = answer->status;
    recording->take.reason = text_format("%.*s", (int)answer->reason.len, answer->reason.at);
    add_fields(&answer->fields, recorder->secrets, &recording->take.response);
    tap_begin(&recording->response, true);
}

static void finish_message(struct tap *tap, bool whole, struct take_message *message)
{
    char sha256[SHA256_TEXT];

    tap_end(tap, sha256);
    message->sha256 = text_copy(sha256);
    message->size = tap->size;
    message->cut = tap->cut || !whole;
    text_add_bytes(&message->body, text_string(&tap->kept), tap->kept.len);
}

void recording_end(struct recording *recording, struct recorder *recorder, bool request_whole,
                   bool answer_whole)
{
    autotext struct text line = TEXT_NONE;

    if (!recording)
        return;
    bool answered = recording->take.status;

    if ((answered || (recording->sent && !gate_leaves_out("record-sent"))) && !recorder->failed) {
        if (!answered)
            recording->take.reason = text_copy("");
        finish_message(&recording->request, request_whole, &recording->take.request);
        finish_message(&recording->response, answer_whole && answered, &recording->take.response);
        take_write(&recording->take, &line);
        put(recorder, line.data, line.len);
    }
    tap_free(&recording->request);
    tap_free(&recording->response);
    take_free(&recording->take);
    free(recording);
    recorder->under_way--;
    share_room(recorder);
}
