#include "tests/unit/trace/world.h"

#include "base/error.h"
#include "base/own.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

void world_add(struct trace *trace, const char *kind, unsigned n)
{
    autonode struct node data = { .kind = NODE_MAP };
    autofree char *text = text_format("%u", n);
    struct error err;

    node_add(&data, "n", NODE_NUMBER, text);
    if (trace_add(trace, kind, &data, &err) < 0)
        fail_msg("%s", err.text);
}

void world_make(const struct unit_scratch *scratch, unsigned lines)
{
    struct trace trace = TRACE_NONE;
    struct error err;

    (void)unlinkat(scratch->dir, TRACE_FILE, 0);
    if (trace_open(scratch->dir, &trace, &err) < 0)
        fail_msg("%s", err.text);
    for (unsigned i = 1; i <= lines; i++)
        world_add(&trace, "test", i);
    trace_close(&trace);
}

void world_bytes(const struct unit_scratch *scratch, struct text *out)
{
    autoclose int fd = openat(scratch->dir, TRACE_FILE, O_RDONLY | O_CLOEXEC);
    char buffer[4096];
    ssize_t got;

    assert_true(fd >= 0);
    text_clear(out);
    while ((got = read(fd, buffer, sizeof buffer)) > 0)
        text_add_bytes(out, buffer, (size_t)got);
}

void world_replace(const struct unit_scratch *scratch, const char *bytes, size_t len)
{
    autoclose int fd = openat(scratch->dir, TRACE_FILE, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, len), len);
}

static int see(void *owner, const struct trace_line *line, bool verified)
{
    struct world_seen *seen = owner;

    assert_true(seen->len < 64);
    seen->seqs[seen->len] = line->seq;
    seen->verified[seen->len] = verified;
    snprintf(seen->kinds[seen->len++], sizeof seen->kinds[0], "%s", line->kind);
    return 0;
}

struct world_seen world_read(const struct unit_scratch *scratch)
{
    struct world_seen seen = { 0 };
    struct error err;

    if (trace_read(scratch->dir, see, &seen, &seen.found, &err) < 0)
        fail_msg("%s", err.text);
    return seen;
}
