#include "base/text.h"

#include "base/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void text_free(struct text *text)
{
    free(text->data);
    *text = TEXT_NONE;
}

void text_clear(struct text *text)
{
    text->len = 0;
    if (text->data)
        text->data[0] = '\0';
}

static void reserve(struct text *text, size_t more)
{
    size_t need = text->len + more + 1;

    if (text->data && need <= text->cap)
        return;
    text->cap = need < 64 ? 64 : need + need / 2;
    text->data = memory_resize(text->data, text->cap);
}

void text_add_bytes(struct text *text, const void *bytes, size_t len)
{
    reserve(text, len);
    if (len)
        memcpy(text->data + text->len, bytes, len);
    text->len += len;
    text->data[text->len] = '\0';
}

void text_cut(struct text *text, size_t len)
{
    text->len = len;
    if (text->data)
        text->data[len] = '\0';
}

void text_drop(struct text *text, size_t len)
{
    if (len == text->len) {
        text_free(text);
        return;
    }
    text->len -= len;
    memmove(text->data, text->data + len, text->len + 1);
}

void text_add(struct text *text, const char *string)
{
    text_add_bytes(text, string, strlen(string));
}

__attribute__((format(printf, 2, 0))) static void add_formatted(struct text *text, const char *format,
                                                                va_list args)
{
    size_t room = text->data ? text->cap - text->len : 0;
    va_list again;

    va_copy(again, args);
    int len = vsnprintf(room ? text->data + text->len : NULL, room, format, again);
    va_end(again);
    if (len < 0)
        abort(); /* only a broken format string gets here */
    if ((size_t)len >= room) {
        reserve(text, (size_t)len);
        vsnprintf(text->data + text->len, (size_t)len + 1, format, args);
    }
    text->len += (size_t)len;
}

void text_addf(struct text *text, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    add_formatted(text, format, args);
    va_end(args);
}

/* Follows the table of well-formed sequences in the Unicode standard: no overlong form, no surrogate. */
size_t text_utf8_length(const char *string)
{
    const unsigned char *bytes = (const unsigned char *)string;
    static const struct {
        unsigned char first_low, first_high, second_low, second_high, length;
    } forms[] = {
        { 0x00, 0x7f, 0x80, 0xbf, 1 }, { 0xc2, 0xdf, 0x80, 0xbf, 2 }, { 0xe0, 0xe0, 0xa0, 0xbf, 3 },
        { 0xe1, 0xec, 0x80, 0xbf, 3 }, { 0xed, 0xed, 0x80, 0x9f, 3 }, { 0xee, 0xef, 0x80, 0xbf, 3 },
        { 0xf0, 0xf0, 0x90, 0xbf, 4 }, { 0xf1, 0xf3, 0x80, 0xbf, 4 }, { 0xf4, 0xf4, 0x80, 0x8f, 4 },
    };

    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (bytes[0] < forms[i].first_low || bytes[0] > forms[i].first_high)
            continue;
        if (forms[i].length > 1 && (bytes[1] < forms[i].second_low || bytes[1] > forms[i].second_high))
            return 0;
        for (size_t at = 2; at < forms[i].length; at++)
            if ((bytes[at] & 0xc0) != 0x80)
                return 0;
        return forms[i].length;
    }
    return 0;
}

uint32_t text_utf8_code(const char *at, size_t len)
{
    uint32_t first = (unsigned char)at[0], code = len == 1 ? first : first & (0xffu >> (len + 1));

    for (size_t i = 1; i < len; i++)
        code = code << 6 | ((unsigned char)at[i] & 0x3f);
    return code;
}

/* C1 controls have a two-byte form (C2 80 to C2 9F) that terminals obey; U+2028 to U+202E and
 * U+2066 to U+2069 reorder or break the line they stand in. */
static bool moves_the_cursor(const unsigned char *at, size_t len)
{
    if (len == 1)
        return *at < 0x20 || *at == 0x7f;
    if (len == 2)
        return at[0] == 0xc2 && at[1] < 0xa0;
    if (len == 3 && at[0] == 0xe2)
        return (at[1] == 0x80 && at[2] >= 0xa8 && at[2] <= 0xae) ||
               (at[1] == 0x81 && at[2] >= 0xa6 && at[2] <= 0xa9);
    return false;
}

/* Of two or three bytes. */
static unsigned code_of(const unsigned char *at, size_t len)
{
    return len == 2 ? (at[0] & 0x1fU) << 6 | (at[1] & 0x3fU)
                    : (at[0] & 0x0fU) << 12 | (at[1] & 0x3fU) << 6 | (at[2] & 0x3fU);
}

bool text_is_utf8(const char *string)
{
    for (size_t len; *string; string += len)
        if ((len = text_utf8_length(string)) == 0)
            return false;
    return true;
}

static const char base64_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void text_add_base64(struct text *text, const void *bytes, size_t len)
{
    const unsigned char *at = bytes;

    for (size_t i = 0; i < len; i += 3) {
        size_t have = len - i < 3 ? len - i : 3;
        uint32_t three = (uint32_t)at[i] << 16;
        char four[4];

        three |= have > 1 ? (uint32_t)at[i + 1] << 8 : 0;
        three |= have > 2 ? at[i + 2] : 0;
        for (size_t n = 0; n < 4; n++)
            four[n] = (char)(n > have ? '=' : base64_digits[three >> (18 - 6 * n) & 0x3f]);
        text_add_bytes(text, four, sizeof four);
    }
}

/* Four of them; how many bytes they stand for, 0: none. */
static size_t read_base64(const char *four, unsigned char three[3])
{
    uint32_t bits = 0;
    size_t have = four[2] == '=' ? 1 : four[3] == '=' ? 2 : 3;

    for (size_t n = 0; n < 4; n++) {
        const char *digit = n > have ? base64_digits : strchr(base64_digits, four[n]);

        if (!digit || !*digit || (n > have && four[n] != '='))
            return 0;
        bits = bits << 6 | (uint32_t)(digit - base64_digits);
    }
    for (size_t n = 0; n < 3; n++)
        three[n] = (unsigned char)(bits >> (16 - 8 * n));
    return (have < 2 && three[1]) || (have < 3 && three[2]) ? 0 : have; /* one spelling only */
}

bool text_add_from_base64(struct text *text, const char *coded)
{
    autotext struct text bytes = TEXT_NONE;
    size_t len = strlen(coded), have = 3;

    for (size_t at = 0; at < len; at += 4) {
        unsigned char three[3];

        if (have < 3 || len - at < 4 || !(have = read_base64(coded + at, three)))
            return false;
        text_add_bytes(&bytes, three, have);
    }
    text_add_bytes(text, text_string(&bytes), bytes.len);
    return true;
}

void text_add_json(struct text *text, const char *string)
{
    static const char plain[] = "\"\\\b\f\n\r\t", escaped[] = "\"\\bfnrt";
    const unsigned char *at = (const unsigned char *)string;

    text_add(text, "\"");
    while (*at) {
        const char *known = strchr(plain, *at);
        size_t len = text_utf8_length((const char *)at);

        if (known)
            text_addf(text, "\\%c", escaped[known - plain]);
        else if (*at < 0x20 || *at == 0x7f)
            text_addf(text, "\\u%04x", *at);
        else if (len > 1 && moves_the_cursor(at, len)) /* the same to a program, and harmless on a terminal */
            text_addf(text, "\\u%04x", code_of(at, len));
        else if (len)
            text_add_bytes(text, at, len);
        else
            text_add(text, "\xef\xbf\xbd");
        at += len ? len : 1;
    }
    text_add(text, "\"");
}

void text_add_inert(struct text *text, const char *string)
{
    const unsigned char *at = (const unsigned char *)string;

    while (*at) {
        size_t len = text_utf8_length((const char *)at);

        if (len && !moves_the_cursor(at, len)) {
            text_add_bytes(text, at, len);
        } else {
            len = len ? len : 1;
            for (size_t i = 0; i < len; i++)
                text_addf(text, "\\x%02x", at[i]);
        }
        at += len;
    }
}

void text_add_shell_word(struct text *text, const char *string)
{
    static const char harmless[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-";

    if (*string && !string[strspn(string, harmless)]) {
        text_add(text, string);
        return;
    }
    text_add(text, "'");
    for (; *string; string++)
        if (*string == '\'')
            text_add(text, "'\\''");
        else
            text_add_bytes(text, string, 1);
    text_add(text, "'");
}

const char *text_string(const struct text *text)
{
    return text->data ? text->data : "";
}

char *text_steal(struct text *text)
{
    char *data = text->data ? text->data : text_copy("");

    *text = TEXT_NONE;
    return data;
}

char *text_format(const char *format, ...)
{
    struct text text = TEXT_NONE;
    va_list args;

    va_start(args, format);
    add_formatted(&text, format, args);
    va_end(args);
    return text_steal(&text);
}

char *text_copy(const char *string)
{
    size_t size = strlen(string) + 1;

    return memcpy(memory_resize(NULL, size), string, size);
}

char text_small(char byte)
{
    if (byte < 'A' || byte > 'Z')
        return byte;
    return (char)(byte - 'A' + 'a');
}

bool text_starts(const char *string, const char *prefix)
{
    return strncmp(string, prefix, strlen(prefix)) == 0;
}

bool text_ends(const char *string, const char *suffix)
{
    size_t length = strlen(string), tail = strlen(suffix);

    return length >= tail && strcmp(string + length - tail, suffix) == 0;
}

bool path_within(const char *path, const char *tree)
{
    size_t len = strlen(tree);

    while (len && tree[len - 1] == '/')
        len--;
    return strncmp(path, tree, len) == 0 && (path[len] == '/' || path[len] == '\0');
}
