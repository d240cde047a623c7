/* Any record: what is taken of it comes back from its own line, has no field that is two, and makes rules that
 * are read as the same answer. */
#include "gateway/tape.h"

#include "base/error.h"
#include "base/own.h"
#include "gateway/mockfile.h"
#include "spec/mock.h"
#include "spec/node.h"
#include "spec/read.h"
#include "tests/fuzz/fuzz.h"

static void check_fields(const struct take_fields *list)
{
    for (size_t i = 0; i < list->len; i++) {
        check(*list->items[i].name && !strpbrk(list->items[i].name, "\r\n: "));
        check(!strpbrk(list->items[i].value, "\r\n"));
    }
}

static void check_again(const struct take *take)
{
    autotake struct take again = TAKE_NONE;
    autotext struct text line = TEXT_NONE, second = TEXT_NONE;
    struct error err;

    take_write(take, &line);
    check(strchr(line.data, '\n') == line.data + line.len - 1);
    if (line.len > TAKE_LINE_MAX)
        return;
    check(take_read(line.data, line.len, "again", &again, &err) == 0);
    take_write(&again, &second);
    check(strcmp(line.data, second.data) == 0);
}

/* A policy with this rule alone is one. */
static void check_rule(const struct take *take)
{
    autotext struct text policy = TEXT_NONE;
    struct error err;
    autonode struct node root = NODE_NONE;

    if (mockfile_refuses(take))
        return;
    mockfile_begin(&policy);
    mockfile_add(take, mockfile_is_inline(take) ? NULL : "bodies/0001.bin", &policy);
    check(spec_check_policy(policy.data, policy.len, "file", LAYER_OWNER, "/home/me", &err) == 0);
    check(node_read_yaml(policy.data, policy.len, "file", &root, &err) == 0);

    const struct node *rules = node_get(&root.items[0], "rules");
    const struct node *body = node_get(node_get(&rules->items[0], "mock"), "body");

    check(rules->len == 1 && strcmp(node_get(&rules->items[0], "host")->text, take->host) == 0);
    check(!body || strcmp(body->text, text_string(&take->response.body)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autotape struct tape tape = TAPE_NONE;
    struct error err;

    if (tape_read((const char *)data, size, &tape, &err) < 0)
        return 0;
    for (size_t i = 0; i < tape.len; i++) {
        const struct take *take = &tape.items[i].take;
        const struct tape_question question = { take->host, (unsigned)take->port, take->method, take->path };

        check(!strpbrk(take->reason, "\r\n") && take->response.body.len <= TAKE_BODY_MAX);
        check_fields(&take->request.fields);
        check_fields(&take->response.fields);
        check_again(take);
        check_rule(take);
        check((tape_look(&tape, &question) == TAPE_HAS) ==
              (tape_take(&tape, &question, take->request.sha256) != NULL));
    }
    return 0;
}
