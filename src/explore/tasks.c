#include "explore/tasks.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "spec/node.h"

#include <string.h>

static int check_line(const char *line, size_t len, const char *shown, struct error *err)
{
    autonode struct node node = NODE_NONE;

    if (len > TASK_LINE_MAX)
        return error_set(err, ERROR_INVALID, "%s: a task is at most %d bytes", shown, TASK_LINE_MAX);
    if (memchr(line, 0, len))
        return error_set(err, ERROR_INVALID, "%s: there is a NUL in it", shown);
    if (node_read_json(line, len, shown, &node, err) < 0)
        return -1;
    return node.kind == NODE_MAP ? 0 : error_set(err, ERROR_INVALID, "%s: a task is an object", shown);
}

int tasks_read(const char *bytes, size_t len, const char *shown, struct strings *out, struct error *err)
{
    autostrings struct strings lines = STRINGS_NONE;
    const char *at = bytes, *end = bytes + len;

    for (unsigned number = 1; at < end; number++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t length = (size_t)((newline ? newline : end) - at);
        autofree char *name = text_format("%s, line %u", shown, number);

        if (length && strspn(at, " \t\r") < length) {
            if (lines.len == TASKS_MAX)
                return error_set(err, ERROR_INVALID, "%s: more than %d tasks", shown, TASKS_MAX);
            if (check_line(at, length, name, err) < 0)
                return -1;
            strings_take(&lines, text_format("%.*s", (int)length, at));
        }
        at += length + 1;
    }
    if (!lines.len)
        return error_set(err, ERROR_INVALID, "%s: there is no task in it", shown);
    *out = lines;
    lines = STRINGS_NONE;
    return 0;
}

/* NULL if it cannot be part of a variable's name. */
static char *upper(const char *key)
{
    static const char small[] = "abcdefghijklmnopqrstuvwxyz", big[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    char *out = text_copy(key);

    for (char *at = out; *at; at++) {
        const char *letter = strchr(small, *at);

        if (letter)
            *at = big[letter - small];
        else if (*at != '_' && !strchr(big, *at) && (*at < '0' || *at > '9')) {
            free(out);
            return NULL;
        }
    }
    return out;
}

static void add_member(const struct node *node, struct strings *out)
{
    autofree char *name = *node->key ? upper(node->key) : NULL;

    if (name && strcmp(name, "JSON") != 0 &&
        (node->kind == NODE_STRING || node->kind == NODE_NUMBER || node->kind == NODE_BOOL))
        strings_take(out, text_format("COVE_TASK_%s=%s", name, node->text));
}

void tasks_environment(uint64_t number, const char *line, struct strings *out)
{
    autonode struct node node = NODE_NONE;
    struct error ignored;

    strings_take(out, text_format("COVE_TASK=%llu", (unsigned long long)number));
    strings_take(out, text_format("COVE_TASK_JSON=%s", line));
    if (node_read_json(line, strlen(line), "task", &node, &ignored) < 0)
        return;
    for (size_t i = 0; i < node.len; i++)
        add_member(&node.items[i], out);
}
