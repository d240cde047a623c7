/* A trace that anybody may have written.  It is read in bounded memory, whole or piece by piece with the same
 * result. A writer goes on behind whatever it is, changes none of its bytes, and breaks no chain. */

#include "base/error.h"
#include "spec/node.h"
#include "tests/fuzz/place.h"
#include "trace/step.h"
#include "trace/trace.h"

static const char *const names[] = { TRACE_FILE, NULL };

/* What is taken as a line comes back from its own JSON the same. */
static int check_line(void *owner, const struct trace_line *line, bool verified)
{
    (void)owner, (void)verified;
    check(line->seq > 0 && line->kind && line->data.kind == NODE_MAP);
    check_hash(line->prev, SHA256_TEXT - 1);
    return 0;
}

static void check_form(const uint8_t *data, size_t size)
{
    autotraceline struct trace_line line = TRACE_LINE_NONE, again = TRACE_LINE_NONE;
    autotext struct text json = TEXT_NONE, json_again = TEXT_NONE;

    if (!trace_line_read((const char *)data, size, &line))
        return;
    trace_line_write(&line, &json);
    if (json.len > TRACE_LINE_MAX)
        return;
    check(trace_line_read(json.data, json.len, &again));
    trace_line_write(&again, &json_again);
    check(strcmp(json.data, json_again.data) == 0);
}

static void check_steps(int dir)
{
    autosteps struct steps steps = STEPS_NONE;
    struct error err;

    check(steps_read(dir, false, &steps, &err) == 0);
    for (size_t i = 0; i < steps.len; i++) {
        autonode struct node node = NODE_NONE;
        autotext struct text json = TEXT_NONE;

        check(steps.items[i].state != STEP_IS_RUNNING && steps_find(&steps, steps.items[i].number));
        step_node(&steps.items[i], &node);
        node_write_json(&node, &json);
    }
}

static struct trace_found read_whole(int dir)
{
    struct trace_found found;
    struct error err;

    check(trace_read(dir, check_line, NULL, &found, &err) == 0);
    check((found.how == TRACE_WHOLE) == (found.broken == 0) && found.records <= found.lines);
    return found;
}

static void check_pieces(int dir, const uint8_t *data, size_t size, const struct trace_found *whole)
{
    autotracereader struct trace_reader reader = TRACE_READER_NONE;
    struct error err;

    place_write(TRACE_FILE, data, size / 2);
    check(trace_reader_open(dir, &reader, &err) == 0);
    check(trace_reader_advance(&reader, check_line, NULL, &err) == 0);
    place_write(TRACE_FILE, data, size);
    check(trace_reader_advance(&reader, check_line, NULL, &err) == 0);
    trace_reader_end(&reader);
    check(memcmp(&reader.found, whole, sizeof *whole) == 0);
}

static void check_going_on(int dir, const uint8_t *data, size_t size, const struct trace_found *before)
{
    struct trace trace = TRACE_NONE;
    struct error err;

    check(trace_open(dir, &trace, &err) == 0);
    check(trace_add(&trace, "test", NULL, &err) == 0);
    trace_close(&trace);

    struct trace_found after = read_whole(dir);
    autofree uint8_t *now = malloc(size + 1);
    autoclose int fd = openat(dir, TRACE_FILE, O_RDONLY | O_CLOEXEC);

    check(after.records > before->records && after.records <= before->records + 3);
    check(before->how != TRACE_WHOLE || after.how == TRACE_WHOLE);
    check(before->how == TRACE_WHOLE || before->broken > before->lines || after.how != TRACE_TRUNCATED);
    check(now && read(fd, now, size) == (ssize_t)size && memcmp(now, data, size) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int dir = place_open(names);

    check_form(data, size);
    place_write(TRACE_FILE, data, size);

    struct trace_found found = read_whole(dir);

    check_steps(dir);
    check_pieces(dir, data, size, &found);
    if (found.seq < 1000000) /* numbers end somewhere */
        check_going_on(dir, data, size, &found);
    return 0;
}
