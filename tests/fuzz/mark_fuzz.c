/* What a program inside says of a step: any bytes in a struct mark.  Its words are whole, within it, and as
 * many as it says, or it is none. */
#include "keeper/mark_words.h"

#include "init/mark.h"
#include "keeper/words.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mark *mark = calloc(1, sizeof *mark); /* of its own, so that reading behind it is seen */
    autowords struct words words = WORDS_NONE;
    size_t total = 0;

    if (!mark)
        abort();
    memcpy(mark, data, size < sizeof *mark ? size : sizeof *mark);
    if (mark_words(mark, &words)) {
        if (mark->kind != MARK_BEGIN || words.argv.len + 1 != mark->words || words.argv.len == 0)
            abort();
        for (size_t i = 0; i < words.argv.len; i++)
            total += strlen(words.argv.items[i]) + 1;
        if (total + strlen(words.cwd) + 1 != mark->length || mark->length > sizeof mark->text)
            abort();
    } else if (words.cwd || words.argv.len) {
        abort();
    }
    free(mark);
    return 0;
}
