#include "keeper/live_report.h"

#include "base/array.h"
#include "base/text.h"
#include "keeper/live_main.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void live_end_free(struct live_end *end)
{
    for (size_t i = 0; i < end->rests.len; i++) {
        free(end->rests.items[i].path);
        free(end->rests.items[i].why);
    }
    free(end->rests.items);
    *end = (struct live_end){ 0 };
}

static void add_number(struct text *out, uint64_t number)
{
    text_addf(out, "%" PRIu64, number);
    text_add_bytes(out, "", 1);
}

static void add_field(struct text *out, const char *field)
{
    text_add_bytes(out, field, strlen(field) + 1);
}

void live_report_add(const struct live_end *end, struct text *out)
{
    add_number(out, end->brought);
    for (size_t i = 0; i < BRING_KINDS; i++)
        add_number(out, end->counts[i]);
    add_number(out, end->slow);
    add_field(out, end->problem.kind != ERROR_NONE ? end->problem.text : "");
    for (size_t i = 0; i < end->rests.len; i++) {
        add_number(out, end->rests.items[i].kind);
        add_field(out, end->rests.items[i].path);
        add_field(out, end->rests.items[i].why);
    }
    add_field(out, "end");
}

struct reader {
    const char *at, *end; /* the last byte before `end` is NUL */
};

static const char *next_field(struct reader *reader)
{
    const char *field = reader->at;

    if (reader->at >= reader->end)
        return NULL;
    reader->at += strlen(reader->at) + 1;
    return field;
}

static uint64_t next_number(struct reader *reader)
{
    const char *field = next_field(reader);

    return field ? strtoull(field, NULL, 10) : 0;
}

static bool parse_rest(const char *kind, struct reader *reader, struct live_end *out)
{
    const char *path = next_field(reader), *why = next_field(reader);
    uint64_t number = strtoull(kind, NULL, 10);

    if (!why || number >= BRING_KINDS)
        return false;
    *array_add(&out->rests) = (struct bring_rest){ (enum bring_kind)number, text_copy(path), text_copy(why) };
    return true;
}

bool live_report_parse(const char *bytes, size_t len, struct live_end *out)
{
    struct reader reader = { bytes, bytes + len };
    const char *problem, *kind;

    if (!len || bytes[len - 1])
        return false;
    out->brought = next_number(&reader);
    for (size_t i = 0; i < BRING_KINDS; i++)
        out->counts[i] = next_number(&reader);
    out->slow = next_number(&reader);
    problem = next_field(&reader);
    if (problem && *problem)
        error_set(&out->problem, ERROR_SYSTEM, "%s", problem);
    while ((kind = next_field(&reader)) && strcmp(kind, "end") != 0)
        if (!parse_rest(kind, &reader, out))
            return false;
    return kind;
}
