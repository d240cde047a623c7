#include "keeper/mark_words.h"

#include "base/text.h"
#include "init/mark.h"
#include "keeper/words.h"

#include <string.h>

bool mark_words(const struct mark *mark, struct words *out)
{
    autowords struct words words = WORDS_NONE;
    const char *at = mark->text, *end;

    if (mark->version != MARK_VERSION || mark->kind != MARK_BEGIN || mark->length > sizeof mark->text ||
        mark->words < 2)
        return false;
    end = at + mark->length;
    for (uint32_t i = 0; i < mark->words; i++) {
        const char *stop = at < end ? memchr(at, '\0', (size_t)(end - at)) : NULL;

        if (!stop)
            return false;
        if (i == 0)
            words.cwd = text_copy(at);
        else
            strings_add(&words.argv, at);
        at = stop + 1;
    }
    if (at != end)
        return false;
    *out = words_take(&words);
    return true;
}
