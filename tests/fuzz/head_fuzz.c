/* Any request: what goes on is read again as the same request, and nothing of it is left for another. */
#include "net/head.h"

#include "base/text.h"
#include "tests/fuzz/fuzz.h"

static void check_body(const struct head *head, const char *rest, size_t len)
{
    struct body whole, parts;
    int64_t sum = 0, taken;

    body_begin(&whole, head);
    parts = whole;
    taken = body_take(&whole, rest, len);
    check(taken <= (int64_t)len);
    for (size_t i = 0; i < len && sum >= 0; i++) {
        int64_t one = body_take(&parts, rest + i, 1);

        sum = one < 0 ? -1 : sum + one;
    }
    check(sum == taken && (sum < 0 || whole.over == parts.over));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct head head, again;
    autotext struct text out = TEXT_NONE;
    const char *bytes = (const char *)data, *why;

    if (size > HEAD_MAX || head_read(bytes, size, &head, &why) != HEAD_WHOLE)
        return 0;
    check(head.size <= size && head.count <= HEAD_FIELDS_MAX && head.path.len > 0);
    check_body(&head, bytes + head.size, size - head.size);
    head_write(&head, "a.com", &out);
    text_add_bytes(&out, "GET", 3);
    check(head_read(text_string(&out), out.len, &again, &why) == HEAD_WHOLE || out.len > HEAD_MAX);
    check(again.size == out.len - 3 && again.body == head.body && again.length == head.length);
    check(again.host.len == strlen("a.com") && again.method.len == head.method.len);
    return 0;
}
