#include "prove/statement.h"

#include "base/date.h"
#include "base/sha256.h"
#include "base/text.h"
#include "limits/limits.h"

#include <inttypes.h>

size_t statement_count(const struct statement *statement, enum held held)
{
    size_t count = 0;

    for (size_t i = 0; i < rows_len; i++)
        count += statement->verdicts[i].held == held;
    return count;
}

enum held statement_layer(const struct statement *statement, enum layer layer)
{
    enum held found = HELD_UNKNOWN;

    for (size_t i = 0; i < rows_len; i++) {
        unsigned layers = row_layers(&rows[i], statement->landlock_abi);

        if (!(layers >> layer & 1))
            continue;
        if (statement->verdicts[i].held == HELD_NOT)
            return HELD_NOT;
        if (statement->verdicts[i].held == HELD && layers == 1U << layer)
            found = HELD;
    }
    return found;
}

const char *held_name(enum held held)
{
    static const char *const names[] = { [HELD] = "held", [HELD_NOT] = "gap", [HELD_UNKNOWN] = "unknown" };

    return names[held];
}

/* `before` is what stands in front of it: a bracket or a comma. */
static void add_member(struct text *out, const char *before, const char *name, const char *value)
{
    text_addf(out, "%s\"%s\":", before, name);
    if (value)
        text_add_json(out, value);
    else
        text_add(out, "null");
}

static void add_layers(const struct statement *statement, struct text *out)
{
    text_add(out, ",\"layers\":[");
    for (unsigned i = 0; i < LAYER_COUNT; i++) {
        add_member(out, i ? ",{" : "{", "name", layer_name(i));
        add_member(out, ",", "result", held_name(statement_layer(statement, i)));
        text_add(out, "}");
    }
    text_add(out, "]");
}

static void add_limits(const struct limits *limits, struct text *out)
{
    const char *comma = "";

    text_add(out, ",\"limits\":[");
    for (unsigned i = 0; i < LIMIT_COUNT; i++) {
        const struct limit_choice *choice = &limits->items[i];

        if (!choice->max)
            continue;
        text_addf(out, "%s{\"hard\":%s", comma, limit_way_is_hard(choice->way) ? "true" : "false");
        add_member(out, ",", "kept_by", limit_way_name(choice->way));
        text_addf(out, ",\"max\":%" PRIu64, choice->max);
        add_member(out, ",", "name", limit_name(i));
        text_add(out, "}");
        comma = ",";
    }
    text_add(out, "]");
}

static void add_row(const struct row *row, const struct verdict *verdict, int landlock_abi, struct text *out)
{
    unsigned layers = row_layers(row, landlock_abi);
    const char *comma = "";

    text_add(out, "{\"held_by\":[");
    for (unsigned i = 0; i < LAYER_COUNT; i++)
        if (layers >> i & 1) {
            text_addf(out, "%s\"%s\"", comma, layer_name(i));
            comma = ",";
        }
    text_add(out, "]");
    add_member(out, ",", "id", row->id);
    add_member(out, ",", "result", held_name(verdict->held));
    text_addf(out, ",\"tried\":%s", row->attempt ? "true" : "false");
    add_member(out, ",", "what", row->words);
    add_member(out, ",", "why", verdict->why);
    text_add(out, "}");
}

static void add_rows(const struct statement *statement, struct text *out)
{
    text_add(out, ",\"rows\":[");
    for (size_t i = 0; i < rows_len; i++) {
        if (i)
            text_add(out, ",");
        add_row(&rows[i], &statement->verdicts[i], statement->landlock_abi, out);
    }
    text_add(out, "]");
}

static void add_head(const struct statement *statement, struct text *out)
{
    char date[DATE_SIZE];

    date_write(statement->date, date);
    add_member(out, "{\"cove\":{", "build", statement->build);
    add_member(out, ",", "version", statement->version);
    add_member(out, "},", "date", date);
    add_member(out, ",\"host\":{", "machine", statement->machine);
    add_member(out, ",", "release", statement->release);
    add_member(out, ",", "system", statement->system);
    text_addf(out, "},\"landlock_abi\":%d", statement->landlock_abi);
    add_layers(statement, out);
    add_limits(statement->limits, out);
    add_member(out, ",\"policy\":{", "image", statement->image);
    add_member(out, ",", "profile", statement->profile);
    add_member(out, ",", "sha256", statement->policy);
    add_member(out, ",", "workspace", statement->workspace);
    text_add(out, "}");
    add_rows(statement, out);
}

static void add_tail(const struct statement *statement, struct text *out)
{
    text_addf(out, ",\"summary\":{\"gap\":%zu,\"held\":%zu,\"unknown\":%zu}",
              statement_count(statement, HELD_NOT), statement_count(statement, HELD),
              statement_count(statement, HELD_UNKNOWN));
    add_member(out, ",\"user\":{", "ids", statement->ids);
    add_member(out, ",", "name", statement->user);
    text_addf(out, ",\"uid\":%u}}", (unsigned)statement->uid);
}

void statement_json(const struct statement *statement, struct text *out)
{
    autotext struct text head = TEXT_NONE, tail = TEXT_NONE;
    struct sha256 *sha256 = sha256_new();
    unsigned char bytes[SHA256_BYTES];
    char hash[SHA256_TEXT];

    add_head(statement, &head);
    add_tail(statement, &tail);
    sha256_add(sha256, head.data, head.len);
    sha256_add(sha256, tail.data, tail.len);
    sha256_end(sha256, bytes);
    sha256_text(bytes, hash);
    text_add(out, text_string(&head));
    add_member(out, ",", "sha256", hash);
    text_add(out, text_string(&tail));
    text_add(out, "\n");
}
