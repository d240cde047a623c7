#include "changes/tricks.h"

#include "base/array.h"
#include "base/text.h"
#include "changes/lines.h"
#include "changes/names.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* In the order of their bits. */
static const struct {
    const char *name, *says;
} tricks[] = {
    { "bidi", "characters that reorder the line" },
    { "invisible", "characters that are not seen" },
    { "carriage-return", "carriage returns within a line" },
    { "control", "control characters" },
    { "long-line", "a very long line" },
    { "nul", "NUL bytes" },
    { "no-utf8", "bytes that are no UTF-8" },
    { "mixed-scripts", "words of Latin and Cyrillic letters" },
};

const char *trick_name(unsigned bit)
{
    return bit < ARRAY_LEN(tricks) ? tricks[bit].name : NULL;
}

const char *trick_says(unsigned bit)
{
    return bit < ARRAY_LEN(tricks) ? tricks[bit].says : NULL;
}

static const struct range {
    uint32_t first, last;
    enum trick trick;
} hidden[] = {
    { 0x80, 0x9f, TRICK_CONTROL },       { 0xad, 0xad, TRICK_INVISIBLE },
    { 0x34f, 0x34f, TRICK_INVISIBLE },   { 0x61c, 0x61c, TRICK_BIDI },
    { 0x115f, 0x1160, TRICK_INVISIBLE }, { 0x17b4, 0x17b5, TRICK_INVISIBLE },
    { 0x180b, 0x180f, TRICK_INVISIBLE }, { 0x200b, 0x200d, TRICK_INVISIBLE },
    { 0x200e, 0x200f, TRICK_BIDI },      { 0x2028, 0x2029, TRICK_CONTROL },
    { 0x202a, 0x202e, TRICK_BIDI },      { 0x2060, 0x2065, TRICK_INVISIBLE },
    { 0x2066, 0x2069, TRICK_BIDI },      { 0x206a, 0x206f, TRICK_INVISIBLE },
    { 0x3164, 0x3164, TRICK_INVISIBLE }, { 0xfe00, 0xfe0f, TRICK_INVISIBLE },
    { 0xfeff, 0xfeff, TRICK_INVISIBLE }, { 0xffa0, 0xffa0, TRICK_INVISIBLE },
    { 0xfff9, 0xfffb, TRICK_INVISIBLE }, { 0xe0000, 0xe0fff, TRICK_INVISIBLE },
};

/* Joiners and variants belong to emoji and to scripts that need them; behind a Latin letter they do not. */
static bool belongs(uint32_t code, uint32_t before)
{
    return (code == 0x200c || code == 0x200d || (code >= 0xfe00 && code <= 0xfe0f)) && before >= 0x590;
}

static unsigned trick_of(uint32_t code, uint32_t before)
{
    if (code < 0x20 || code == 0x7f)
        return code == '\t' || code == '\f' ? 0
               : code == '\r'               ? TRICK_RETURN
               : code                       ? TRICK_CONTROL
                                            : TRICK_NUL;
    for (size_t i = 0; code >= 0x80 && i < ARRAY_LEN(hidden); i++)
        if (code >= hidden[i].first && code <= hidden[i].last)
            return belongs(code, before) ? 0 : hidden[i].trick;
    return 0;
}

static bool is_plain(const char *line, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (((unsigned char)line[i] < 0x20 && line[i] != '\t') || (unsigned char)line[i] >= 0x7f)
            return false;
    return true;
}

static bool is_letter(char byte)
{
    return (byte & 0x80) || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_';
}

static bool mixes_scripts(const char *line, const char *end)
{
    while (line < end) {
        const char *word = line;

        while (line < end && is_letter(*line))
            line++;
        if (line > word && name_mixes_scripts(word, (size_t)(line - word), false))
            return true;
        line += line < end && !is_letter(*line);
    }
    return false;
}

static unsigned tricks_of_line(const char *line, size_t len)
{
    unsigned found = len > TRICK_LINE_MAX ? TRICK_LONG : 0;
    uint32_t before = 0;

    if (len && line[len - 1] == '\r')
        len--;
    if (is_plain(line, len))
        return found;
    for (const char *at = line, *end = line + len; at < end;) {
        size_t step = text_utf8_length(at);
        uint32_t code = step ? text_utf8_code(at, step) : 0;

        found |= step ? trick_of(code, before) : TRICK_ENCODING;
        before = code;
        at += step ? step : 1;
    }
    return found | (mixes_scripts(line, line + len) ? TRICK_SCRIPTS : 0);
}

static void add_tricks(void *owner, const char *line, size_t len)
{
    *(unsigned *)owner |= tricks_of_line(line, len);
}

static bool is_tricky(const char *line, size_t len)
{
    return tricks_of_line(line, len) != 0;
}

/* A mark at the very beginning says that it is UTF-8, and is no trick. */
static void skip_mark(const char **text, size_t *len)
{
    if (*len >= 3 && memcmp(*text, "\xef\xbb\xbf", 3) == 0) {
        *text += 3;
        *len -= 3;
    }
}

unsigned tricks_added(const char *old, size_t old_len, const char *new, size_t new_len)
{
    unsigned found = 0;

    skip_mark(&old, &old_len);
    skip_mark(&new, &new_len);
    lines_added(old, old_len, new, new_len, is_tricky, add_tricks, &found);
    return found;
}

static void show(struct text *out, const char *at, size_t len, uint32_t before)
{
    uint32_t code = len ? text_utf8_code(at, len) : (unsigned char)*at;

    if (len > 1 && trick_of(code, before))
        text_addf(out, "<U+%04X>", code);
    else if (!len || (trick_of(code, before) | (code == '\f')))
        text_addf(out, "\\x%02x", code);
    else
        text_add_bytes(out, at, len);
}

void tricks_add_shown(struct text *out, const char *line, size_t len)
{
    size_t shown = 0;
    uint32_t before = 0;

    while (shown < len && shown < TRICK_LINE_MAX) {
        size_t step = text_utf8_length(line + shown);

        show(out, line + shown, step, before);
        before = step ? text_utf8_code(line + shown, step) : 0;
        shown += step ? step : 1;
    }
    if (shown < len)
        text_addf(out, " ... and %zu bytes more", len - shown);
}
