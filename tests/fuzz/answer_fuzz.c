/* Any answer: what goes on is read again as the same answer, by clients of either version. */
#include "net/answer.h"

#include "base/text.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_body.h"
#include "tests/fuzz/fuzz_head.h"

static void check_written(const struct answer *answer, bool to_head, bool old)
{
    static struct answer again;
    autotext struct text out = TEXT_NONE;
    const char *why;
    enum head_body wanted = answer->body == HEAD_UNTIL_CLOSE && !old ? HEAD_CHUNKED
                            : answer->body == HEAD_CHUNKED && old    ? HEAD_UNTIL_CLOSE
                                                                     : answer->body;

    answer_write(answer, old, old, &out);
    text_add_bytes(&out, "HTTP", 4);
    if (!is_readable(&out, ANSWER_MAX))
        return;
    check(answer_read(text_string(&out), out.len, to_head, &again, &why) == HEAD_WHOLE);
    check(again.size == out.len - 4 && again.status == answer->status && again.body == wanted);
    check(again.body != HEAD_LENGTH || again.length == answer->length);
    check(answer_in_chunks(answer, old) == (wanted == HEAD_CHUNKED));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct answer answer;
    const char *bytes = (const char *)data, *why;
    bool to_head;

    if (size < 1 || size > ANSWER_MAX)
        return 0;
    to_head = data[0] & 1;
    bytes++;
    size--;
    if (answer_read(bytes, size, to_head, &answer, &why) != HEAD_WHOLE)
        return 0;
    check(answer.size <= size && answer.fields.count <= HEAD_FIELDS_MAX);
    check(answer.status >= 100 && answer.status <= 599);
    check_body(answer.body, answer.length, true, bytes + answer.size, size - answer.size);
    check_written(&answer, to_head, false);
    check_written(&answer, to_head, true);
    return 0;
}
