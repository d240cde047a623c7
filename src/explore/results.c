#include "explore/results.h"

#include "base/error.h"
#include "base/file.h"
#include "base/own.h"
#include "base/text.h"
#include "spec/node.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

enum { VERSION = 1 };

static void about_free(struct results_about *about)
{
    free(about->run);
    free(about->layer);
    free(about->digest);
    *about = (struct results_about){ 0 };
}

static char *key_of(uint64_t task, uint64_t number)
{
    return text_format("%llu/%llu", (unsigned long long)task, (unsigned long long)number);
}

void results_free(struct results *results)
{
    for (size_t i = 0; i < results->len; i++)
        tried_free(&results->items[i]);
    free(results->items);
    map_free(&results->known);
    about_free(&results->about);
    *results = RESULTS_NONE;
}

bool results_have(const struct results *results, uint64_t task, uint64_t number)
{
    autofree char *key = key_of(task, number);

    return map_get(&results->known, key) > 0;
}

bool results_take(struct results *results, struct tried *tried)
{
    autofree char *key = key_of(tried->task, tried->number);

    if (map_add(&results->known, key, 1) != 1)
        return false;
    *array_add(results) = tried_take(tried);
    return true;
}

/* --- reading --- */

/* A word that becomes part of names and labels. */
static bool is_word(const struct node *node)
{
    return node && node->kind == NODE_STRING && *node->text && strlen(node->text) <= 64 &&
           !node->text[strspn(node->text, "abcdefghijklmnopqrstuvwxyz0123456789")];
}

static int read_about(const char *bytes, size_t len, const char *shown, struct results_about *out,
                      struct error *err)
{
    autonode struct node root = NODE_NONE;

    if (node_read_json(bytes, len, shown, &root, err) < 0)
        return -1;

    bool map = root.kind == NODE_MAP;
    const struct node *version = map ? node_get(&root, "explore") : NULL,
                      *run = map ? node_get(&root, "run") : NULL,
                      *layer = map ? node_get(&root, "layer") : NULL,
                      *digest = map ? node_get(&root, "digest") : NULL;

    if (!version || version->kind != NODE_NUMBER || strcmp(version->text, "1") != 0 || !is_word(run) ||
        !is_word(layer) || !is_word(digest))
        return error_set(err, ERROR_INVALID, "%s: this is no file of results of `cove explore`", shown);
    *out = (struct results_about){ text_copy(run->text), text_copy(layer->text), text_copy(digest->text) };
    return 0;
}

static int read_line(const char *line, size_t len, const char *shown, struct results *out, struct error *err)
{
    autotried struct tried tried = TRIED_NONE;

    if (len > TRIED_LINE_MAX)
        return error_set(err, ERROR_INVALID, "%s: this line is too long", shown);
    if (!out->about.run)
        return read_about(line, len, shown, &out->about, err);
    if (tried_read(line, len, shown, &tried, err) < 0)
        return -1;
    if (out->len == RESULTS_MAX)
        return error_set(err, ERROR_INVALID, "%s: there are too many lines", shown);
    (void)results_take(out, &tried);
    return 0;
}

int results_parse(const char *bytes, size_t len, const char *shown, struct results *out, struct error *err)
{
    autoresults struct results results = RESULTS_NONE;
    unsigned number = 1;

    for (const char *at = bytes, *newline; (newline = memchr(at, '\n', len - (size_t)(at - bytes)));
         at = newline + 1, number++) {
        autofree char *name = text_format("%s, line %u", shown, number);

        if (read_line(at, (size_t)(newline - at), name, &results, err) < 0)
            return -1;
        results.whole = (size_t)(newline + 1 - bytes);
    }
    *out = results;
    results = RESULTS_NONE;
    return 0;
}

static int read_all(int fd, const char *path, struct text *out, struct error *err)
{
    int more = file_add_rest(fd, RESULTS_BYTES_MAX, out);

    if (more < 0)
        return error_sys(err, "read %.200s", path);
    return more ? error_set(err, ERROR_INVALID, "%.200s: this file is too large", path) : 0;
}

/* The lock is the process's own: a child of one that was killed does not have it for a moment more. */
int results_open(const char *path, struct results *out, struct error *err)
{
    autotext struct text content = TEXT_NONE;
    autoresults struct results results = RESULTS_NONE;
    autoclose int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
    struct stat status;

    if (fd < 0 || fstat(fd, &status) < 0)
        return error_sys(err, "open %.200s", path);
    if (!S_ISREG(status.st_mode))
        return error_set(err, ERROR_INVALID, "--results %.200s: this is no file", path);
    if (fcntl(fd, F_SETLK, &(struct flock){ .l_type = F_WRLCK, .l_whence = SEEK_SET }) < 0)
        return error_set(err, ERROR_REFUSED, "%.200s: another `cove explore` is at work with it", path);
    if (read_all(fd, path, &content, err) < 0 ||
        results_parse(text_string(&content), content.len, path, &results, err) < 0)
        return -1;
    if (results.whole < content.len && ftruncate(fd, (off_t)results.whole) < 0)
        return error_sys(err, "cut off the half line at the end of %.200s", path);
    *out = results;
    results = RESULTS_NONE;
    return steal_fd(&fd);
}

/* --- writing --- */

/* In one call: whoever reads meanwhile sees a line or none.  A part of one is cut off again. */
static int append(int fd, struct text *line, struct error *err)
{
    off_t before = lseek(fd, 0, SEEK_END);
    ssize_t put;

    text_add(line, "\n");
    while ((put = write(fd, line->data, line->len)) < 0 && errno == EINTR)
        continue;
    if (put == (ssize_t)line->len)
        return fdatasync(fd) < 0 ? error_sys(err, "write the results to the disk") : 0;
    if (put >= 0) {
        errno = ENOSPC;
        (void)!ftruncate(fd, before);
    }
    return error_sys(err, "write the results");
}

int results_begin(int fd, const struct results_about *about, struct error *err)
{
    autotext struct text line = TEXT_NONE;

    text_addf(&line, "{\"digest\":\"%s\",\"explore\":%d,\"layer\":\"%s\",\"run\":\"%s\"}", about->digest,
              VERSION, about->layer, about->run);
    return append(fd, &line, err);
}

int results_add(int fd, const struct tried *tried, struct error *err)
{
    autotext struct text line = TEXT_NONE;

    tried_json(tried, &line);
    return append(fd, &line, err);
}
