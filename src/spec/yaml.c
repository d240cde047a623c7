/* YAML by libyaml's events.  Of YAML we take what has one meaning for everybody: mappings, lists
 * and scalars of the 1.2 core schema.  What one reader expands and another does not (anchors,
 * tags, merge keys, directives, several documents) is refused. */

#include "spec/node.h"

#include "base/array.h"
#include "base/error.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

struct reader {
    yaml_parser_t parser;
    yaml_event_t event; /* the current one; empty after it was used up */
    const char *shown;
    struct error *err;
};

static unsigned line_of(const struct reader *reader)
{
    return (unsigned)reader->event.start_mark.line + 1;
}

static int refuse(struct reader *reader, const char *what)
{
    return error_set(reader->err, ERROR_INVALID, "%s:%u: %s", reader->shown, line_of(reader), what);
}

/* Reads the next event, whose type must not be an error. */
static int next(struct reader *reader)
{
    yaml_event_delete(&reader->event);
    if (yaml_parser_parse(&reader->parser, &reader->event))
        return 0;

    const yaml_parser_t *parser = &reader->parser;

    return error_set(reader->err, ERROR_INVALID, "%s:%u: this is no YAML: %s%s%s", reader->shown,
                     (unsigned)parser->problem_mark.line + 1,
                     parser->problem ? parser->problem : "cannot be read", parser->context ? ", " : "",
                     parser->context ? parser->context : "");
}

static bool is_one_of(const char *word, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(word, *words) == 0)
            return true;
    return false;
}

static bool is_number(const char *text)
{
    static const char digits[] = "0123456789";
    size_t whole, part = 0;

    text += *text == '-' || *text == '+';
    whole = strspn(text, digits);
    text += whole;
    if (*text == '.') {
        part = strspn(text + 1, digits);
        text += 1 + part;
    }
    if (!whole && !part)
        return false;
    if (*text == 'e' || *text == 'E') {
        text++;
        text += *text == '-' || *text == '+';
        if (!strspn(text, digits))
            return false;
        text += strspn(text, digits);
    }
    return !*text;
}

/* The 1.2 core schema; `yes`, `on` and the like are text. */
static enum node_kind kind_of_plain(const char *text)
{
    static const char *const nulls[] = { "", "~", "null", "Null", "NULL", NULL };
    static const char *const bools[] = { "true", "True", "TRUE", "false", "False", "FALSE", NULL };

    if (is_one_of(text, nulls))
        return NODE_NULL;
    if (is_one_of(text, bools))
        return NODE_BOOL;
    return is_number(text) ? NODE_NUMBER : NODE_STRING;
}

static int read_scalar(struct reader *reader, struct node *node)
{
    const char *text = (const char *)reader->event.data.scalar.value;

    if (reader->event.data.scalar.tag)
        return refuse(reader, "tags (!...) are not allowed");
    if (reader->event.data.scalar.anchor)
        return refuse(reader, "anchors (&...) are not allowed");
    if (strlen(text) != reader->event.data.scalar.length)
        return refuse(reader, "a text must not have a zero byte in it");
    node->kind = NODE_STRING;
    if (reader->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
        node->kind = kind_of_plain(text);
    if (node->kind == NODE_BOOL)
        text = text[0] == 't' || text[0] == 'T' ? "true" : "false";
    if (node->kind != NODE_NULL)
        node->text = text_copy(text);
    return 0;
}

static int read_value(struct reader *reader, struct node *node, unsigned depth);

static int read_list(struct reader *reader, struct node *node, unsigned depth)
{
    node->kind = NODE_LIST;
    if (reader->event.data.sequence_start.tag)
        return refuse(reader, "tags (!...) are not allowed");
    if (reader->event.data.sequence_start.anchor)
        return refuse(reader, "anchors (&...) are not allowed");
    for (;;) {
        if (next(reader) < 0)
            return -1;
        if (reader->event.type == YAML_SEQUENCE_END_EVENT)
            return 0;
        if (read_value(reader, array_add(node), depth + 1) < 0)
            return -1;
    }
}

/* The key the reader stands at; it must be new in `map`. */
static int read_key(struct reader *reader, const struct node *map, char **out)
{
    struct node key = NODE_NONE;
    autotext struct text shown = TEXT_NONE;

    if (reader->event.type != YAML_SCALAR_EVENT)
        return refuse(reader, "a key must be a plain word");
    if (map->len >= NODE_KEYS_MAX)
        return refuse(reader, "a mapping must not have more than 1024 keys");
    if (read_scalar(reader, &key) < 0)
        return -1;
    if (!key.text)
        return refuse(reader, "a key must not be empty");
    node_show_text(key.text, &shown);
    if (node_get(map, key.text)) {
        free(key.text);
        return error_set(reader->err, ERROR_INVALID, "%s:%u: the key %s is there twice", reader->shown,
                         line_of(reader), text_string(&shown));
    }
    *out = key.text;
    return 0;
}

static int read_map(struct reader *reader, struct node *node, unsigned depth)
{
    node->kind = NODE_MAP;
    if (reader->event.data.mapping_start.tag)
        return refuse(reader, "tags (!...) are not allowed");
    if (reader->event.data.mapping_start.anchor)
        return refuse(reader, "anchors (&...) are not allowed");
    for (;;) {
        char *key = NULL;

        if (next(reader) < 0)
            return -1;
        if (reader->event.type == YAML_MAPPING_END_EVENT)
            return 0;
        if (read_key(reader, node, &key) < 0)
            return -1;

        struct node *value = array_add(node);
        unsigned line = line_of(reader);

        value->key = key;
        if (next(reader) < 0 || read_value(reader, value, depth + 1) < 0)
            return -1;

        /* The line of the key: that is where people look, and where a missing value is missing. */
        value->line = line;
    }
}

static int read_value(struct reader *reader, struct node *node, unsigned depth)
{
    node->line = line_of(reader);
    if (depth >= NODE_DEPTH_MAX)
        return refuse(reader, "nested too deeply");
    if (reader->event.type == YAML_SCALAR_EVENT)
        return read_scalar(reader, node);
    if (reader->event.type == YAML_SEQUENCE_START_EVENT)
        return read_list(reader, node, depth);
    if (reader->event.type == YAML_MAPPING_START_EVENT)
        return read_map(reader, node, depth);
    return refuse(reader, "aliases (*...) are not allowed");
}

static int read_document(struct reader *reader, struct node *out)
{
    if (next(reader) < 0) /* the start of the stream */
        return -1;
    if (next(reader) < 0) /* the start of the document */
        return -1;
    if (reader->event.type == YAML_STREAM_END_EVENT)
        return refuse(reader, "is empty; write {} if it should say nothing");
    if (reader->event.data.document_start.version_directive ||
        reader->event.data.document_start.tag_directives.start)
        return refuse(reader, "directives (%...) are not allowed");
    if (next(reader) < 0 || read_value(reader, out, 0) < 0)
        return -1;
    if (next(reader) < 0) /* the end of the document */
        return -1;
    if (next(reader) < 0)
        return -1;
    if (reader->event.type != YAML_STREAM_END_EVENT)
        return refuse(reader, "a second document begins here; only one is allowed");
    return 0;
}

/* The code point of the two or three bytes at `at`, 0 if they are neither: libyaml itself refuses
 * what is no UTF-8. */
static unsigned code_point(const unsigned char *at, size_t len)
{
    if (len >= 2 && (at[0] & 0xe0) == 0xc0)
        return (at[0] & 0x1fU) << 6 | (at[1] & 0x3fU);
    if (len >= 3 && (at[0] & 0xf0) == 0xe0)
        return (at[0] & 0x0fU) << 12 | (at[1] & 0x3fU) << 6 | (at[2] & 0x3fU);
    return 0;
}

/* libyaml takes all of these in silence: it skips a byte order mark at any line's start and ends
 * lines, also comments, at characters that no editor shows as an end. */
static const char *forbidden_at(const char *at, const char *end)
{
    static const struct {
        unsigned first, last;
        const char *what;
    } forbidden[] = {
        { 0x85, 0x85, "has a hidden line end (U+0085)" },
        { 0x2028, 0x2029, "has a hidden line end (U+2028 or U+2029)" },
        { 0x202a, 0x202e, "has a character that reorders text (U+202A to U+202E)" },
        { 0x2066, 0x2069, "has a character that reorders text (U+2066 to U+2069)" },
        { 0xfeff, 0xfeff, "has a byte order mark" },
    };
    unsigned code = code_point((const unsigned char *)at, (size_t)(end - at));

    if (*at == '\0')
        return "has a zero byte";
    if (*at == '\r' && (at + 1 == end || at[1] != '\n'))
        return "has a carriage return without a line feed";
    for (size_t i = 0; code && i < ARRAY_LEN(forbidden); i++)
        if (code >= forbidden[i].first && code <= forbidden[i].last)
            return forbidden[i].what;
    return NULL;
}

static int check_bytes(const char *bytes, size_t len, const char *shown, struct error *err)
{
    unsigned line = 1;

    if (len > NODE_BYTES_MAX)
        return error_set(err, ERROR_INVALID, "%s: is larger than 1 MB", shown);
    for (size_t i = 0; i < len; i++) {
        const char *what = forbidden_at(bytes + i, bytes + len);

        if (what)
            return error_set(err, ERROR_INVALID, "%s:%u: %s", shown, line, what);
        line += bytes[i] == '\n';
    }
    return 0;
}

int node_read_yaml(const char *bytes, size_t len, const char *shown, struct node *out, struct error *err)
{
    struct reader reader = { .shown = shown, .err = err };
    int result;

    *out = NODE_NONE;
    if (check_bytes(bytes, len, shown, err) < 0)
        return -1;
    if (!yaml_parser_initialize(&reader.parser))
        return error_set(err, ERROR_SYSTEM, "%s: no memory to read it", shown);
    yaml_parser_set_encoding(&reader.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&reader.parser, (const unsigned char *)bytes, len);
    result = read_document(&reader, out);
    yaml_event_delete(&reader.event);
    yaml_parser_delete(&reader.parser);
    if (result < 0)
        node_free(out);
    return result;
}
