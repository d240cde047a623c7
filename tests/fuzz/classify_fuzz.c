/* A change as three pieces: path, old and new content, with 0xff between them; the first byte says
 * of what kind the files are.  The verdict is always the same, what did not change is ordinary,
 * capital letters do not help, and what a person will read is printable. */

#include "changes/classify.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(int holds)
{
    if (!holds)
        abort();
}

static struct classify_verdict judge(const struct classify_input *in)
{
    struct classify_verdict verdict;

    memset(&verdict, 0x55, sizeof verdict);
    classify(in, &verdict);
    need(verdict.class <= CLASSIFY_AUTORUN && verdict.reason);
    need((verdict.class == CLASSIFY_ORDINARY) == !*verdict.reason);
    need(memchr(verdict.part, '\0', sizeof verdict.part) != NULL);
    for (const char *at = verdict.part; *at; at++)
        need(*at >= ' ' && *at <= '~');
    return verdict;
}

/* A copy of its own, so that a read past the end is seen by the sanitizers. */
static char *take(const uint8_t **data, size_t *size, size_t *len)
{
    const uint8_t *end = memchr(*data, 0xff, *size);

    *len = end ? (size_t)(end - *data) : *size;

    char *copy = malloc(*len ? *len : 1);

    need(copy != NULL);
    memcpy(copy, *data, *len);
    *data += *len + (end != NULL);
    *size -= *len + (end != NULL);
    return copy;
}

static mode_t mode_of(unsigned bits)
{
    static const mode_t modes[] = { S_IFREG | 0644, S_IFREG | 0755, S_IFLNK | 0777, 0 };

    return modes[bits & 3];
}

static void capitalise(char *path, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (path[i] >= 'a' && path[i] <= 'z')
            path[i] = (char)(path[i] - 'a' + 'A');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct classify_input in = { 0 };

    if (!size)
        return 0;

    uint8_t kind = *data++;

    size--;

    char *path = take(&data, &size, &in.path_len), *old = take(&data, &size, &in.old.len);
    char *new = take(&data, &size, &in.new.len);

    in.path = path;
    in.old.mode = mode_of(kind);
    in.old.bytes = old;
    in.new.mode = mode_of(kind >> 2);
    in.new.bytes = new;
    in.new.cut = kind & 16;
    in.in_bare = kind & 32 ? path + (kind >> 6) * in.path_len / 4 : NULL;

    struct classify_verdict verdict = judge(&in), again = judge(&in);

    need(verdict.class == again.class && strcmp(verdict.part, again.part) == 0);
    capitalise(path, in.path_len);
    again = judge(&in);
    need(verdict.class == again.class && strcmp(verdict.part, again.part) == 0);

    in.new = in.old;
    need(judge(&in).class == CLASSIFY_ORDINARY);
    free(path);
    free(old);
    free(new);
    return 0;
}
