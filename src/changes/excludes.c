#include "changes/excludes.h"

#include "base/own.h"
#include "changes/scan.h"

#include <fcntl.h>
#include <string.h>
#include <strings.h>

/* A file with rules. */
struct source {
    char *path;
    struct ignore_rules rules;
};

struct excludes_level {
    char *path;           /* of the directory; "" is the work tree's */
    struct source own;    /* its .gitignore */
    struct source shared; /* its .git/info/exclude, if it is the top of a repository */
    size_t top;           /* index of the level at which its repository begins */
    bool in_repository;
    struct excludes_answer answer; /* about itself */
};

static void source_free(struct source *source)
{
    free(source->path);
    ignore_rules_free(&source->rules);
}

static void pop(struct excludes *excludes)
{
    struct excludes_level *level = &excludes->items[--excludes->len];

    free(level->path);
    source_free(&level->own);
    source_free(&level->shared);
}

void excludes_free(struct excludes *excludes)
{
    while (excludes->len)
        pop(excludes);
    free(excludes->items);
    excludes->items = NULL;
    excludes->cap = 0;
}

/* --- reading rules --- */

/* What the upper has in the place of a file of the base, or that it is gone there, holds inside. */
static bool is_of_upper(const struct excludes *excludes, const char *path)
{
    autoclose int fd = excludes->inside ? scan_open(excludes->upper, path, O_PATH | O_CLOEXEC) : -1;

    return fd >= 0;
}

static void read_source(const struct excludes *excludes, const char *directory, const char *name,
                        struct source *out)
{
    autotext struct text bytes = TEXT_NONE;

    out->path = scan_join(directory, name);

    int root = is_of_upper(excludes, out->path) ? excludes->upper : excludes->base;

    if (content_text(root, out->path, IGNORE_BYTES_MAX, &bytes))
        ignore_parse(&out->rules, text_string(&bytes), bytes.len);
}

static bool is_top(const struct excludes *excludes, const char *directory)
{
    autofree char *path = scan_join(directory, ".git");
    autoclose int fd = scan_open(excludes->base, path, O_PATH | O_CLOEXEC);

    return fd >= 0;
}

/* --- asking --- */

static const char *below(const struct excludes_level *level, const char *path)
{
    size_t len = strlen(level->path);

    return path + len + (len > 0);
}

static enum ignore_answer ask_source(struct excludes *excludes, struct source *source, const char *path,
                                     bool directory)
{
    uint64_t before = source->rules.steps;
    enum ignore_answer answer = IGNORE_UNSAID;

    if (!source->rules.len)
        return answer;
    answer =
        excludes->steps < EXCLUDES_STEPS_MAX ? ignore_ask(&source->rules, path, directory) : IGNORE_TOO_LONG;
    excludes->steps += source->rules.steps - before;
    return answer;
}

/* What the rules of the levels say of a path directly in the innermost one. */
static void ask_levels(struct excludes *excludes, const char *path, bool directory, struct excludes_answer *out)
{
    const struct excludes_level *last = &excludes->items[excludes->len - 1];
    struct source *by = NULL;
    enum ignore_answer answer = IGNORE_UNSAID;

    *out = last->answer;
    if (last->answer.ignored || !last->in_repository)
        return;
    for (size_t i = excludes->len; i-- > last->top && answer == IGNORE_UNSAID;) {
        by = &excludes->items[i].own;
        answer = ask_source(excludes, by, below(&excludes->items[i], path), directory);
    }
    if (answer == IGNORE_UNSAID) {
        by = &excludes->items[last->top].shared;
        answer = ask_source(excludes, by, below(&excludes->items[last->top], path), directory);
    }
    if (answer == IGNORE_TOO_LONG)
        *out = (struct excludes_answer){ .too_long = true, .rule = by->path };
    if (answer == IGNORE_YES)
        *out = (struct excludes_answer){ .ignored = true,
                                         .directory = directory ? strlen(path) : 0,
                                         .nested = last->top > 0,
                                         .rule = by->path };
}

static void push(struct excludes *excludes, const char *path)
{
    struct excludes_level level = { .path = text_copy(path) };
    const struct excludes_level *around = excludes->len ? &excludes->items[excludes->len - 1] : NULL;

    if (around) {
        level.top = around->top;
        level.in_repository = around->in_repository;
        ask_levels(excludes, path, true, &level.answer);
    }
    /* What is below an ignored directory is ignored, whatever else is said in there. */
    if (!level.answer.ignored) {
        if (is_top(excludes, path)) {
            level.top = excludes->len;
            level.in_repository = true;
            read_source(excludes, path, ".git/info/exclude", &level.shared);
        }
        if (level.in_repository)
            read_source(excludes, path, ".gitignore", &level.own);
    }
    *array_add(excludes) = level;
}

static bool is_around(const char *directory, const char *path)
{
    size_t len = strlen(directory);

    return !len || (strncmp(directory, path, len) == 0 && path[len] == '/');
}

static void go_to(struct excludes *excludes, const char *path)
{
    while (excludes->len && !is_around(excludes->items[excludes->len - 1].path, path))
        pop(excludes);
    if (!excludes->len)
        push(excludes, "");
    for (;;) {
        const char *from = below(&excludes->items[excludes->len - 1], path), *slash = strchr(from, '/');

        if (!slash)
            return;

        autofree char *directory = text_format("%.*s", (int)(slash - path), path);

        push(excludes, directory);
    }
}

static bool is_in_git(const char *path)
{
    for (const char *at = path; at; at = strchr(at, '/')) {
        at += *at == '/';
        if (strncasecmp(at, ".git", 4) == 0 && (at[4] == '/' || !at[4]))
            return true;
    }
    return false;
}

void excludes_ask(struct excludes *excludes, const char *path, bool directory, struct excludes_answer *out)
{
    *out = (struct excludes_answer){ 0 };
    if (is_in_git(path))
        return;
    go_to(excludes, path);
    ask_levels(excludes, path, directory, out);
}
