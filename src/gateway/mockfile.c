#include "gateway/mockfile.h"

#include "base/array.h"
#include "base/own.h"
#include "base/text.h"
#include "gateway/take.h"
#include "net/fields.h"
#include "spec/mock.h"
#include "spec/node.h"
#include "spec/rule_path.h"

#include <string.h>
#include <strings.h>

enum { INLINE_MAX = 1024 };

/* What a rule has of a path; empty: it can have none. */
static char *path_of(const struct take *take)
{
    autotext struct text plain = TEXT_NONE;

    if (!path_plain(take->path, &plain) || strchr(text_string(&plain), '*') ||
        !path_is_pattern(text_string(&plain)))
        return text_copy("");
    return text_steal(&plain);
}

const char *mockfile_refuses(const struct take *take)
{
    autofree char *path = path_of(take);
    size_t letters = strspn(take->method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-");

    if (take->response.cut || take->status < 200)
        return "its answer was not kept whole";
    if (!letters || take->method[letters] || letters > 31)
        return "no rule can name its method";
    if (!*path)
        return "no rule can name its path";
    return take->response.body.len > NODE_BYTES_MAX ? "its body is larger than that of a mock may be" : NULL;
}

char *mockfile_key(const struct take *take)
{
    autofree char *path = path_of(take);

    return text_format("%s %u %s %s", take->host, (unsigned)take->port, take->method, path);
}

/* Printable, and the usual controls of a text: anything else is better looked at in a file. */
static bool is_simple(const char *text, size_t len, const char *controls)
{
    for (size_t i = 0; i < len; i++)
        if ((text[i] < ' ' || text[i] == 0x7f) && !(text[i] && strchr(controls, text[i])))
            return false;
    return true;
}

bool mockfile_is_inline(const struct take *take)
{
    const struct text *body = &take->response.body;

    return body->len <= INLINE_MAX && is_simple(text_string(body), body->len, "\n\t");
}

const char *mockfile_ending(const struct take *take)
{
    static const struct {
        const char *type, *ending;
    } endings[] = { { "json", ".json" }, { "html", ".html" }, { "xml", ".xml" }, { "text/", ".txt" } };
    const struct take_fields *fields = &take->response.fields;

    for (size_t i = 0; i < fields->len; i++)
        for (size_t n = 0; strcasecmp(fields->items[i].name, "content-type") == 0 && n < ARRAY_LEN(endings);
             n++)
            if (strcasestr(fields->items[i].value, endings[n].type))
                return endings[n].ending;
    return ".bin";
}

/* In single quotes if that is possible, so that a body of JSON stays one. */
static void add_scalar(const char *text, struct text *out)
{
    if (!is_simple(text, strlen(text), "")) {
        text_add_json(out, text);
        return;
    }
    text_add(out, "'");
    for (; *text; text++)
        text_add_bytes(out, *text == '\'' ? "''" : text, *text == '\'' ? 2 : 1);
    text_add(out, "'");
}

/* But what frames the body, what was not kept because it is a secret, and what is no plain text. */
static void add_headers(const struct take_fields *fields, struct text *out)
{
    size_t added = 0;

    for (size_t i = 0; i < fields->len && added < MOCK_HEADERS_MAX; i++) {
        const struct take_field *field = &fields->items[i];
        const struct head_field read = { { field->name, strlen(field->name) },
                                         { field->value, strlen(field->value) } };
        autofree char *line = text_format("%s: %s", field->name, field->value);

        if (field->hashed || field_is_ours(&read) || !is_simple(line, strlen(line), "") ||
            part_reads_as(read.name, "content-length") || part_reads_as(read.name, "transfer-encoding"))
            continue;
        text_add(out, added++ ? "          - " : "        headers:\n          - ");
        add_scalar(line, out);
        text_add(out, "\n");
    }
}

void mockfile_begin(struct text *out)
{
    text_add(out, "network:\n  rules:\n");
}

void mockfile_add(const struct take *take, const char *file, struct text *out)
{
    autofree char *path = path_of(take);
    bool bare = take->status == 204 || take->status == 304 || take->response.body.len == 0;

    text_addf(out, "    - host: '%s'\n      port: %u\n      action: mock\n      methods: [%s]\n      paths: [",
              take->host, (unsigned)take->port, take->method);
    add_scalar(path, out);
    text_addf(out, "]\n      mock:\n        status: %u\n", (unsigned)take->status);
    add_headers(&take->response.fields, out);
    if (bare)
        return;
    text_add(out, file ? "        file: " : "        body: ");
    add_scalar(file ? file : text_string(&take->response.body), out);
    text_add(out, "\n");
}
