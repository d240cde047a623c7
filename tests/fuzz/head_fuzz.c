/* Any request: what goes on is read again as the same request, and nothing of it is left for another. */
#include "net/head.h"

#include "base/text.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_body.h"
#include "tests/fuzz/fuzz_head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct head head, again;
    autotext struct text out = TEXT_NONE;
    const char *bytes = (const char *)data, *why;

    if (size > HEAD_MAX || head_read(bytes, size, &head, &why) != HEAD_WHOLE)
        return 0;
    check(head.size <= size && head.fields.count <= HEAD_FIELDS_MAX && (head.path.len > 0 || head.tunnel));
    check_body(head.fields.body, head.fields.length, false, bytes + head.size, size - head.size);
    if (head.tunnel)
        return 0;
    head_write(&head, "a.com", &out);
    text_add_bytes(&out, "GET", 3);
    if (!is_readable(&out, HEAD_MAX))
        return 0;
    check(head_read(text_string(&out), out.len, &again, &why) == HEAD_WHOLE);
    check(again.size == out.len - 3 && again.fields.body == head.fields.body &&
          again.fields.length == head.fields.length);
    check(again.host.len == strlen("a.com") && again.method.len == head.method.len);
    check(again.websocket == head.websocket);
    return 0;
}
