#include "gateway/tape.h"

#include "base/array.h"
#include "base/error.h"
#include "base/own.h"

#include <stdlib.h>
#include <string.h>

void tape_free(struct tape *tape)
{
    for (size_t i = 0; i < tape->len; i++)
        take_free(&tape->items[i].take);
    free(tape->items);
    *tape = TAPE_NONE;
}

/* A line that is none is passed over: a gateway that was killed leaves a part of one. */
static void read_line(const char *line, size_t len, size_t number, struct tape *tape)
{
    struct take take;
    struct error ignored;

    if (len == 0)
        return;
    if (take_read(line, len, "a line", &take, &ignored) == 0) {
        *array_add(tape) = (struct tape_take){ .take = take };
        return;
    }
    tape->broken++;
    if (!tape->first_bad)
        tape->first_bad = number;
}

int tape_read(const char *bytes, size_t len, struct tape *out, struct error *err)
{
    size_t number = 1;

    *out = TAPE_NONE;
    for (size_t at = 0; at < len; number++) {
        const char *end = memchr(bytes + at, '\n', len - at);
        size_t line = end ? (size_t)(end - bytes) - at : len - at;

        read_line(bytes + at, line, number, out);
        at += line + 1;
        if (out->len <= TAPE_TAKES_MAX)
            continue;
        tape_free(out);
        return error_set(err, ERROR_INVALID, "there are more than %d exchanges in it", TAPE_TAKES_MAX);
    }
    return 0;
}

static bool is_of_host(const struct take *take, const struct tape_question *question)
{
    return take->port == question->port && strcmp(take->host, question->host) == 0;
}

static bool is_asked(const struct take *take, const struct tape_question *question)
{
    return is_of_host(take, question) && strcmp(take->method, question->method) == 0 &&
           strcmp(take->path, question->path) == 0;
}

static bool is_whole(const struct take *take)
{
    return !take->response.cut && take->status >= 200;
}

enum tape_answer tape_look(const struct tape *tape, const struct tape_question *question)
{
    enum tape_answer answer = TAPE_NO_HOST;

    for (size_t i = 0; i < tape->len; i++) {
        const struct take *take = &tape->items[i].take;
        enum tape_answer now = !is_of_host(take, question) ? TAPE_NO_HOST
                               : !question->method || (is_asked(take, question) && is_whole(take)) ? TAPE_HAS
                               : is_asked(take, question) ? TAPE_NOT_WHOLE
                                                          : TAPE_NOTHING;

        answer = now > answer ? now : answer;
    }
    return answer;
}

/* The next one with that body, or with any if it is NULL. */
static struct tape_take *next(struct tape *tape, const struct tape_question *question, const char *body_sha256)
{
    struct tape_take *last = NULL;

    for (size_t i = 0; i < tape->len; i++) {
        struct tape_take *at = &tape->items[i];

        if (!is_asked(&at->take, question) || !is_whole(&at->take) ||
            (body_sha256 && strcmp(at->take.request.sha256, body_sha256) != 0))
            continue;
        last = at;
        if (!at->used)
            break;
    }
    return last;
}

const struct take *tape_take(struct tape *tape, const struct tape_question *question, const char *body_sha256)
{
    struct tape_take *found = next(tape, question, body_sha256);

    if (!found)
        found = next(tape, question, NULL);
    if (!found)
        return NULL;
    found->used = true;
    return &found->take;
}
