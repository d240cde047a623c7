#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A string that grows.  Always NUL-terminated once anything was added; TEXT_NONE is an empty
 * one.  Running out of memory ends the process: nothing here returns an error. */
struct text {
    char *data;
    size_t len, cap;
};

#define TEXT_NONE ((struct text){ 0 })
#define autotext __attribute__((cleanup(text_free)))

void text_free(struct text *text);
void text_clear(struct text *text);            /* empties it, keeps the memory */
void text_cut(struct text *text, size_t len);  /* to the first `len` bytes, as many as it has at least */
void text_drop(struct text *text, size_t len); /* its first `len` bytes; of all also the memory */
void text_add(struct text *text, const char *string);
void text_add_bytes(struct text *text, const void *bytes, size_t len);
void text_addf(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* As a JSON string with its quotes.  Bytes that are no UTF-8 become U+FFFD. */
void text_add_json(struct text *text, const char *string);

/* For people and terminals: control characters, DEL and bytes that are no UTF-8 as \xNN, so that
 * no name or message of a sandbox can move a cursor. */
void text_add_inert(struct text *text, const char *string);

/* Length of the well-formed UTF-8 sequence that `string` begins with, 0 if there is none.  At the end of
 * the string, 1. */
size_t text_utf8_length(const char *string);

/* The character that such a sequence of `len` bytes stands for. */
uint32_t text_utf8_code(const char *at, size_t len);

/* As one word of a shell: in single quotes unless every character is harmless. */
void text_add_shell_word(struct text *text, const char *string);

const char *text_string(const struct text *text); /* never NULL */
char *text_steal(struct text *text);              /* the caller frees; never NULL */

/* Like asprintf, but returns the string and never NULL. */
char *text_format(const char *format, ...) __attribute__((format(printf, 1, 2), malloc));
char *text_copy(const char *string) __attribute__((malloc));

/* Whether it is well-formed throughout. */
bool text_is_utf8(const char *string);

void text_add_base64(struct text *text, const void *bytes, size_t len);

/* The bytes that stand behind it.  False, and nothing added: it is not exactly what text_add_base64() writes.
 */
bool text_add_from_base64(struct text *text, const char *coded);

/* Of ASCII's letters the small one; whatever the locale. */
char text_small(char byte);

bool text_starts(const char *string, const char *prefix);
bool text_ends(const char *string, const char *suffix);

/* True if `path` is `tree` or lies below it.  Both absolute, with no "." or ".." in them. */
bool path_within(const char *path, const char *tree);
