#include "cli/replay.h"

#include "base/date.h"
#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "cli/say.h"
#include "spec/node.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

static const char *const names[] = { "stdout", "stderr" };

void replay_open(struct replay *replay, bool json, bool timestamps)
{
    *replay = (struct replay){ .json = json, .timestamps = timestamps };
    screen_open(&replay->screens[0], stdout);
    screen_open(&replay->screens[1], stderr);
}

int replay_failed(const struct replay *replay)
{
    return replay->screens[0].failed ? replay->screens[0].failed : replay->screens[1].failed;
}

/* --- text --- */

static void write_date(uint64_t time_us, char out[DATE_SIZE])
{
    date_write(
        (struct timespec){ .tv_sec = (time_t)(time_us / 1000000), .tv_nsec = (long)(time_us % 1000000) * 1000 },
        out);
}

static void put_with_times(struct replay *replay, const struct output_event *event)
{
    unsigned stream = event->stream - 1;
    const unsigned char *at = event->bytes, *end = at + event->len;
    autotext struct text text = TEXT_NONE;
    char date[DATE_SIZE];

    write_date(event->time_us, date);
    while (at < end) {
        const unsigned char *newline = memchr(at, '\n', (size_t)(end - at));
        const unsigned char *next = newline ? newline + 1 : end;

        if (!replay->within[stream])
            text_addf(&text, "%s ", date);
        text_add_bytes(&text, at, (size_t)(next - at));
        replay->within[stream] = !newline;
        at = next;
    }
    screen_put(&replay->screens[stream], text.data, text.len);
}

/* --- JSON --- */

static void put_node(struct replay *replay, struct node *node)
{
    autotext struct text line = TEXT_NONE;

    node_write_json(node, &line);
    text_add(&line, "\n");
    screen_put(&replay->screens[0], line.data, line.len);
}

static void put_json(struct replay *replay, const struct output_event *event)
{
    autonode struct node node = { .kind = NODE_MAP };
    autotext struct text text = TEXT_NONE, base64 = TEXT_NONE;
    char date[DATE_SIZE];

    write_date(event->time_us, date);
    text_add_bytes(&text, event->bytes, event->len);
    node_add(&node, "stream", NODE_STRING, names[event->stream - 1]);
    node_add(&node, "time", NODE_STRING, date);
    if (strlen(text.data) == text.len && text_is_utf8(text.data)) {
        node_add(&node, "text", NODE_STRING, text.data);
    } else {
        text_add_base64(&base64, event->bytes, event->len);
        node_add(&node, "bytes", NODE_STRING, base64.data);
    }
    put_node(replay, &node);
}

static void put_json_left_out(struct replay *replay, const struct output_count *left_out)
{
    autonode struct node node = { .kind = NODE_MAP };
    struct node *below = node_add(&node, "left_out", NODE_MAP, NULL);

    for (unsigned i = 0; i < 2; i++) {
        autofree char *bytes = text_format("%" PRIu64, left_out->bytes[i]);

        node_add(below, names[i], NODE_NUMBER, bytes);
    }
    put_node(replay, &node);
}

/* --- what is not there --- */

static void settle(struct replay *replay)
{
    for (unsigned i = 0; i < 2; i++) {
        screen_settle(&replay->screens[i]);
        replay->within[i] = false;
    }
}

void replay_left_out(struct replay *replay, const struct output_count *left_out)
{
    settle(replay);
    if (replay->json)
        put_json_left_out(replay, left_out);
    else
        say_warning("%" PRIu64 " bytes of standard output and %" PRIu64
                    " of standard error are left out here: they were not kept",
                    left_out->bytes[0], left_out->bytes[1]);
}

int replay_event(void *owner, const struct output_event *event)
{
    struct replay *replay = owner;

    switch (event->kind) {
    case OUTPUT_BYTES:
        if (replay->json)
            put_json(replay, event);
        else if (replay->timestamps)
            put_with_times(replay, event);
        else
            screen_put(&replay->screens[event->stream - 1], event->bytes, event->len);
        break;
    case OUTPUT_GAP:
        replay_left_out(replay, &event->left_out);
        break;
    case OUTPUT_TORN:
        say_warning("%zu bytes of what was kept make no sense, and are not shown", event->len);
        break;
    }
    return replay_failed(replay);
}

int replay_close(struct replay *replay, struct error *err)
{
    settle(replay);
    errno = replay_failed(replay);
    return errno ? error_sys(err, "write what the step wrote") : 0;
}
