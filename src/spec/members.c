#include "spec/members.h"

#include "base/array.h"
#include "base/date.h"
#include "base/own.h"
#include "base/text.h"
#include "spec/node.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void set_node(struct node *out, enum node_kind kind, const char *text)
{
    out->kind = kind;
    out->text = text ? text_copy(text) : NULL;
}

static bool read_text(const struct node *node, void *into)
{
    if (node->kind != NODE_STRING)
        return false;
    *(char **)into = text_copy(node->text);
    return true;
}

static void write_text(const void *from, struct node *out)
{
    const char *text = *(char *const *)from;

    set_node(out, text ? NODE_STRING : NODE_NULL, text);
}

static bool read_text_or_null(const struct node *node, void *into)
{
    return node->kind == NODE_NULL || read_text(node, into);
}

static bool read_list(const struct node *node, void *into)
{
    if (node->kind != NODE_LIST)
        return false;
    for (size_t i = 0; i < node->len; i++) {
        if (node->items[i].kind != NODE_STRING)
            return false;
        strings_add(into, node->items[i].text);
    }
    return true;
}

static void write_list(const void *from, struct node *out)
{
    const struct strings *list = from;

    out->kind = NODE_LIST;
    for (size_t i = 0; i < list->len; i++)
        node_add(out, NULL, NODE_STRING, list->items[i]);
}

static bool read_digits(const char *text, uint64_t *into)
{
    if (!*text || text[strspn(text, "0123456789")])
        return false;
    errno = 0;
    *into = strtoull(text, NULL, 10);
    return errno == 0;
}

static bool read_number(const struct node *node, void *into)
{
    return node->kind == NODE_NUMBER && read_digits(node->text, into);
}

static bool read_number_or_null(const struct node *node, void *into)
{
    if (node->kind != NODE_NULL)
        return read_number(node, into);
    *(uint64_t *)into = MEMBER_NO_NUMBER;
    return true;
}

static void write_number(const void *from, struct node *out)
{
    autofree char *text = text_format("%" PRIu64, *(const uint64_t *)from);
    bool none = *(const uint64_t *)from == MEMBER_NO_NUMBER;

    set_node(out, none ? NODE_NULL : NODE_NUMBER, none ? NULL : text);
}

static bool read_wide(const struct node *node, void *into)
{
    return node->kind == NODE_STRING && read_digits(node->text, into);
}

static void write_wide(const void *from, struct node *out)
{
    autofree char *text = text_format("%" PRIu64, *(const uint64_t *)from);

    set_node(out, NODE_STRING, text);
}

static bool read_flag(const struct node *node, void *into)
{
    *(bool *)into = node->kind == NODE_BOOL && strcmp(node->text, "true") == 0;
    return node->kind == NODE_BOOL;
}

static void write_flag(const void *from, struct node *out)
{
    set_node(out, NODE_BOOL, *(const bool *)from ? "true" : "false");
}

static bool read_date(const struct node *node, void *into)
{
    return node->kind == NODE_STRING && date_read(node->text, into);
}

static void write_date(const void *from, struct node *out)
{
    char text[DATE_SIZE];

    date_write(*(const struct timespec *)from, text);
    set_node(out, NODE_STRING, text);
}

static bool read_date_or_null(const struct node *node, void *into)
{
    const struct timespec *time = into;

    return node->kind == NODE_NULL || (read_date(node, into) && time->tv_sec != 0);
}

static void write_date_or_null(const void *from, struct node *out)
{
    const struct timespec *time = from;

    if (time->tv_sec != 0)
        write_date(from, out);
    else
        set_node(out, NODE_NULL, NULL);
}

const struct member_kind member_text = { "text", read_text, write_text },
                         member_text_or_null = { "text or null", read_text_or_null, write_text },
                         member_list = { "a list of texts", read_list, write_list },
                         member_number = { "a whole number", read_number, write_number },
                         member_number_or_null = { "a whole number or null", read_number_or_null,
                                                   write_number },
                         member_wide = { "a whole number as text", read_wide, write_wide },
                         member_flag = { "true or false", read_flag, write_flag },
                         member_date = { "a date", read_date, write_date },
                         member_date_or_null = { "a date or null", read_date_or_null, write_date_or_null };

const struct member *members_read(const struct member *rows, size_t count, const struct node *map, void *into)
{
    for (size_t i = 0; i < count; i++) {
        const struct node *value = node_get(map, rows[i].key);

        if (!value && rows[i].later)
            continue;
        if (!value || !rows[i].kind->read(value, (char *)into + rows[i].at))
            return &rows[i];
    }
    return NULL;
}

void members_write(const struct member *rows, size_t count, const void *from, struct node *out)
{
    out->kind = NODE_MAP;
    for (size_t i = 0; i < count; i++)
        rows[i].kind->write((const char *)from + rows[i].at, node_add(out, rows[i].key, NODE_NULL, NULL));
}
