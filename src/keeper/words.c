#include "keeper/words.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif

void words_free(struct words *words)
{
    free(words->cwd);
    strings_free(&words->argv);
    strings_free(&words->envp);
    *words = WORDS_NONE;
}

struct words words_take(struct words *words)
{
    struct words taken = *words;

    *words = WORDS_NONE;
    return taken;
}

static uint32_t add_words(struct text *text, const char *const *words)
{
    uint32_t count = 0;

    for (; words && words[count]; count++)
        text_add_bytes(text, words[count], strlen(words[count]) + 1);
    return count;
}

/* The offset stays 0, so that PID 1 may read or map it. */
static int write_bytes(const struct text *text, struct error *err)
{
    autoclose int fd = memfd_create("words", MFD_CLOEXEC | MFD_NOEXEC_SEAL);

    if (fd < 0 && errno == EINVAL) /* before Linux 6.3 */
        fd = memfd_create("words", MFD_CLOEXEC);
    if (fd < 0)
        return error_sys(err, "make a memfd for the arguments");
    for (size_t done = 0; done < text->len;) {
        ssize_t put = pwrite(fd, text->data + done, text->len - done, (off_t)done);

        if (put < 0 && errno != EINTR)
            return error_sys(err, "write the arguments");
        done += put > 0 ? (size_t)put : 0;
    }
    return steal_fd(&fd);
}

int words_write(const char *cwd, const char *const *argv, const char *const *envp, uint32_t counts[2],
                struct error *err)
{
    autotext struct text text = TEXT_NONE;

    text_add_bytes(&text, cwd, strlen(cwd) + 1);
    counts[0] = add_words(&text, argv);
    counts[1] = add_words(&text, envp);
    return write_bytes(&text, err);
}

static int read_bytes(int fd, size_t most, struct text *out, struct error *err)
{
    struct stat status;
    char part[16 << 10];
    ssize_t got;

    if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
        return error_set(err, ERROR_INVALID, "the words of a command are no file");
    while ((got = pread(fd, part, sizeof part, (off_t)out->len)) > 0) {
        text_add_bytes(out, part, (size_t)got);
        if (out->len > most)
            return error_set(err, ERROR_INVALID, "arguments and environment are larger than %zu bytes", most);
    }
    return got < 0 ? error_sys(err, "read the words of a command") : 0;
}

/* The next word, or NULL if there is none that is whole. */
static const char *take_word(const char **at, const char *end)
{
    const char *word = *at, *stop = word < end ? memchr(word, '\0', (size_t)(end - word)) : NULL;

    if (!stop)
        return NULL;
    *at = stop + 1;
    return word;
}

static bool take_words(const char **at, const char *end, uint32_t count, struct strings *out)
{
    for (uint32_t i = 0; i < count; i++) {
        const char *word = take_word(at, end);

        if (!word)
            return false;
        strings_add(out, word);
    }
    return true;
}

int words_read(int fd, const uint32_t counts[2], size_t most, struct words *out, struct error *err)
{
    autotext struct text text = TEXT_NONE;
    autowords struct words words = WORDS_NONE;

    if (read_bytes(fd, most, &text, err) < 0)
        return -1;

    const char *at = text_string(&text), *end = at + text.len, *cwd = take_word(&at, end);

    if (!cwd || !take_words(&at, end, counts[0], &words.argv) ||
        !take_words(&at, end, counts[1], &words.envp) || at != end || words.argv.len == 0)
        return error_set(err, ERROR_INVALID, "the words of a command are not whole");
    words.cwd = text_copy(cwd);
    *out = words_take(&words);
    return 0;
}
