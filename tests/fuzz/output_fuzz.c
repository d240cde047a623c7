/* Files of kept output that anybody may have written: what is given was in them, and somebody who follows gets
 * the same as somebody who comes later.  Each file has its length in two bytes before it. */

#include "base/error.h"
#include "store/output_read.h"
#include "tests/fuzz/place.h"

#define FILES "output/1.0", "output/1.1", "output/1.2", "output/1.3"

static const char *const names[] = { FILES, "output", NULL };

struct seen {
    struct text streams[2];
    uint64_t torn;
    unsigned gaps;
};

static int see(void *owner, const struct output_event *event)
{
    struct seen *seen = owner;

    if (event->kind == OUTPUT_BYTES) {
        check(event->stream == OUTPUT_STDOUT || event->stream == OUTPUT_STDERR);
        check(event->len > 0 && event->len <= OUTPUT_CHUNK);
        text_add_bytes(&seen->streams[event->stream - 1], event->bytes, event->len);
    } else if (event->kind == OUTPUT_TORN) {
        check(event->len > 0);
        seen->torn += event->len;
    } else {
        check(event->left_out.bytes[0] || event->left_out.bytes[1]);
        seen->gaps++;
    }
    return 0;
}

static void forget(struct seen *seen)
{
    text_free(&seen->streams[0]);
    text_free(&seen->streams[1]);
}

struct parts {
    const uint8_t *at[OUTPUT_SEGMENTS];
    size_t len[OUTPUT_SEGMENTS];
};

static void cut_up(const uint8_t *data, size_t size, struct parts *parts)
{
    for (size_t i = 0; i < OUTPUT_SEGMENTS; i++) {
        size_t len = size < 2 ? 0 : (size_t)data[0] << 8 | data[1], head = size < 2 ? 0 : 2;

        parts->len[i] = len < size - head ? len : size - head;
        parts->at[i] = data + head;
        data += head + parts->len[i];
        size -= head + parts->len[i];
    }
}

static void write_parts(const struct parts *parts, size_t from)
{
    for (size_t i = from; i < OUTPUT_SEGMENTS; i++)
        place_write(names[i], parts->at[i], parts->len[i]);
}

static void follow(int dir, const struct parts *parts, struct seen *seen)
{
    autooutputcursor struct output_cursor cursor = OUTPUT_CURSOR_NONE;
    struct error err;

    for (size_t i = 0; i < OUTPUT_SEGMENTS; i++)
        (void)unlinkat(dir, names[i], 0);
    check(output_cursor_open(dir, 1, &cursor, &err) == 0);
    place_write(names[0], parts->at[0], parts->len[0] / 2);
    check(output_cursor_advance(&cursor, see, seen, &err) == 0);
    place_write(names[0], parts->at[0], parts->len[0]);
    check(output_cursor_advance(&cursor, see, seen, &err) == 0);
    write_parts(parts, 1);
    check(output_cursor_end(&cursor, see, seen, &err) == 0);
}

static void check_same(const struct text *a, const struct text *b)
{
    check(a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0));
}

/* A segment that follows one of a higher number is only seen by who comes late enough. */
static bool is_in_order(const struct parts *parts)
{
    return parts->len[0] < 24 || memcmp(parts->at[0] + 16, "\0\0\0\0\0\0\0\0", 8) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct seen whole = { 0 }, followed = { 0 };
    int dir = place_open(names);
    struct parts parts;
    struct error err;

    (void)mkdirat(dir, "output", 0700);
    cut_up(data, size, &parts);
    write_parts(&parts, 0);
    check(output_read(dir, 1, see, &whole, &err) == 0);
    check(whole.streams[0].len + whole.streams[1].len + whole.torn <= size && whole.gaps <= OUTPUT_SEGMENTS);
    if (is_in_order(&parts)) {
        follow(dir, &parts, &followed);
        check_same(&whole.streams[0], &followed.streams[0]);
        check_same(&whole.streams[1], &followed.streams[1]);
        check(whole.torn == followed.torn && whole.gaps == followed.gaps);
    }
    forget(&whole);
    forget(&followed);
    return 0;
}
