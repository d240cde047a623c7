#include "git/answers.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    PARENTS_MAX = 4096,
    GITLINK = 0160000, /* what git has for a submodule */
    HEAD_MAX = 120,    /* "HASH blob SIZE" */
};

const char *answer_word(const char **at, const char *end)
{
    const char *word = *at, *stop = word < end ? memchr(word, '\0', (size_t)(end - word)) : NULL;

    if (!stop)
        return NULL;
    *at = stop + 1;
    return word;
}

static bool take_mode(const char **at, mode_t *out)
{
    size_t len = strspn(*at, "01234567");

    if (len != 6 || (*at)[len] != ' ')
        return false;
    *out = (mode_t)strtoul(*at, NULL, 8);
    if ((*out & S_IFMT) == GITLINK)
        *out = S_IFDIR | 0755;
    *at += len + 1;
    return true;
}

static bool take_hash(const char **at, size_t digits, char out[HASH_MAX + 1])
{
    if (strspn(*at, "0123456789abcdef") != digits || (*at)[digits] != ' ')
        return false;
    memcpy(out, *at, digits);
    out[digits] = '\0';
    *at += digits + 1;
    return true;
}

/* ":MODE MODE HASH HASH M", and of a merge a colon, a mode and a hash more for each further parent. */
static bool take_sides(const char *word, size_t digits, struct diff_line *out)
{
    size_t parents = strspn(word, ":");
    char hash[HASH_MAX + 1];
    mode_t mode;

    if (!parents || parents > PARENTS_MAX || digits > HASH_MAX)
        return false;
    word += parents;
    for (size_t i = 0; i <= parents; i++) {
        if (!take_mode(&word, &mode))
            return false;
        *(i == 0 ? &out->old_mode : &out->new_mode) = mode;
    }
    for (size_t i = 0; i <= parents; i++) {
        if (!take_hash(&word, digits, hash))
            return false;
        memcpy(i == 0 ? out->old_hash : out->new_hash, hash, digits + 1);
    }
    return *word;
}

/* A directory is no file: what ends so would be nothing in a directory that is judged by its name. */
static bool is_path(const char *path)
{
    size_t len = strlen(path);

    return len > 0 && path[len - 1] != '/';
}

enum answer answer_diff(const char **at, const char *end, size_t digits, struct diff_line *out)
{
    const char *word;

    if (*at >= end)
        return ANSWER_END;
    word = answer_word(at, end);
    if (word && !*word)
        return ANSWER_END;
    if (!word || !take_sides(word, digits, out))
        return ANSWER_NONSENSE;
    out->path = answer_word(at, end);
    return out->path && is_path(out->path) ? ANSWER_ONE : ANSWER_NONSENSE;
}

enum answer answer_blob(const char **at, const char *end, size_t digits, struct blob *out)
{
    static const char kind[] = "blob ";
    size_t left = *at < end ? (size_t)(end - *at) : 0;
    const char *newline = left ? memchr(*at, '\n', left < HEAD_MAX ? left : HEAD_MAX) : NULL, *word = *at;
    char *stop = NULL;

    if (!left)
        return ANSWER_END;
    if (!newline || digits > HASH_MAX || !take_hash(&word, digits, out->hash) ||
        strncmp(word, kind, sizeof kind - 1) != 0)
        return ANSWER_NONSENSE;
    word += sizeof kind - 1;

    unsigned long long size = strtoull(word, &stop, 10);

    if (strspn(word, "0123456789") == 0 || stop != newline || size >= (uint64_t)(end - newline) - 1)
        return ANSWER_NONSENSE;
    out->bytes = newline + 1;
    out->len = (size_t)size;
    *at = out->bytes + out->len + 1;
    return (*at)[-1] == '\n' ? ANSWER_ONE : ANSWER_NONSENSE;
}
