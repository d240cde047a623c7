#include "tests/unit/changes/oracle.h"

#include "base/own.h"
#include "tests/support/unit.h"
#include "tests/support/unit_scratch.h"
#include "tests/unit/changes/world.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* The whole of a tree in memory: slow, simple, and written without a look at how the scan works. */
struct node {
    char *path;
    mode_t mode;
    off_t size;
    char *content; /* of a file or a link */
};

struct tree {
    struct node *items;
    size_t len, cap;
};

static void tree_free(struct tree *tree)
{
    for (size_t i = 0; i < tree->len; i++) {
        free(tree->items[i].path);
        free(tree->items[i].content);
    }
    free(tree->items);
}

static char *content_of(int dir, const char *name, const struct stat *status)
{
    size_t size = S_ISREG(status->st_mode) || S_ISLNK(status->st_mode) ? (size_t)status->st_size : 0;
    char *content = calloc(1, size + 1);

    assert_non_null(content);
    if (S_ISLNK(status->st_mode)) {
        assert_int_equal(readlinkat(dir, name, content, size), size);
    } else if (S_ISREG(status->st_mode)) {
        autoclose int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

        assert_int_equal(read(fd, content, size), size);
    }
    return content;
}

static void read_tree(int dir, const char *path, struct tree *out)
{
    autoclosedir DIR *names = fdopendir(dir);

    assert_non_null(names);
    for (const struct dirent *found; (found = readdir(names));) {
        struct stat status;

        if (strcmp(found->d_name, ".") == 0 || strcmp(found->d_name, "..") == 0)
            continue;
        assert_int_equal(fstatat(dir, found->d_name, &status, AT_SYMLINK_NOFOLLOW), 0);

        char *full = text_format("%s%s%s", path, *path ? "/" : "", found->d_name);

        *array_add(out) = (struct node){
            .path = full,
            .mode = status.st_mode,
            .size = S_ISREG(status.st_mode) ? status.st_size : 0,
            .content = content_of(dir, found->d_name, &status),
        };
        if (S_ISDIR(status.st_mode))
            read_tree(openat(dir, found->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC), full, out);
    }
}

/* Content may have any bytes in it. */
static uint64_t sum_of(const struct node *node)
{
    uint64_t sum = 0;

    for (off_t i = 0; i < node->size; i++)
        sum = sum * 31 + (unsigned char)node->content[i];
    return sum;
}

char *oracle_listing(const struct world *world, const char *top)
{
    struct tree tree = { 0 };
    autostrings struct strings lines = STRINGS_NONE;
    struct text all = TEXT_NONE;

    read_tree(openat(world->scratch->dir, top, O_RDONLY | O_DIRECTORY | O_CLOEXEC), "", &tree);
    for (size_t i = 0; i < tree.len; i++) {
        const struct node *node = &tree.items[i];

        strings_take(&lines, text_format("%s %o %" PRIu64 " %" PRIx64 " %s", node->path, node->mode,
                                         (uint64_t)node->size, sum_of(node), node->content));
    }
    tree_free(&tree);
    strings_sort(&lines);
    for (size_t i = 0; i < lines.len; i++)
        text_addf(&all, "%s\n", lines.items[i]);
    return text_steal(&all);
}

static const struct node *find(const struct tree *tree, const char *path)
{
    for (size_t i = 0; i < tree->len; i++)
        if (strcmp(tree->items[i].path, path) == 0)
            return &tree->items[i];
    return NULL;
}

static void add_side(struct text *line, char type, unsigned mode, uint64_t size)
{
    text_addf(line, " %c%o:%" PRIu64, type, mode & 07777, size);
}

static char letter(mode_t mode)
{
    return S_ISREG(mode) ? 'f' : S_ISLNK(mode) ? 'l' : S_ISDIR(mode) ? 'd' : 'o';
}

static void add_line(struct strings *lines, char kind, const char *path, const struct node *old,
                     const struct node *new)
{
    struct text line = TEXT_NONE;

    text_addf(&line, "%c %s", kind, path);
    if (old)
        add_side(&line, letter(old->mode), old->mode, (uint64_t)old->size);
    if (new)
        add_side(&line, letter(new->mode), new->mode, (uint64_t) new->size);
    strings_take(lines, text_steal(&line));
}

static void compare(const struct tree *base, const struct tree *merged, struct strings *lines)
{
    for (size_t i = 0; i < base->len; i++)
        if (!find(merged, base->items[i].path))
            add_line(lines, 'R', base->items[i].path, &base->items[i], NULL);
    for (size_t i = 0; i < merged->len; i++) {
        const struct node *new = &merged->items[i], *old = find(base, new->path);

        if (!old)
            add_line(lines, 'A', new->path, NULL, new);
        else if (letter(old->mode) != letter(new->mode))
            add_line(lines, 'T', new->path, old, new);
        else if (old->size != new->size || memcmp(old->content, new->content, (size_t) new->size) != 0 ||
                 strcmp(old->content, new->content) != 0)
            add_line(lines, 'C', new->path, old, new);
        else if (old->mode != new->mode)
            add_line(lines, 'M', new->path, old, new);
    }
}

static void side_line(struct strings *lines, char kind, const char *path, const struct side *old,
                      const struct side *new)
{
    static const char letters[] = {
        [SIDE_FILE] = 'f', [SIDE_LINK] = 'l', [SIDE_DIRECTORY] = 'd', [SIDE_OTHER] = 'o'
    };
    struct text line = TEXT_NONE;

    text_addf(&line, "%c %s", kind, path);
    if (old)
        add_side(&line, letters[old->type], old->mode, old->size);
    if (new)
        add_side(&line, letters[new->type], new->mode, new->size);
    strings_take(lines, text_steal(&line));
}

/* The changes in the words of compare(): a renamed file is one removed and one added. */
static void tell(const struct changes *changes, struct strings *lines)
{
    static const char kinds[] = {
        [CHANGE_ADDED] = 'A', [CHANGE_CHANGED] = 'C', [CHANGE_MODE] = 'M', [CHANGE_RETYPED] = 'T'
    };

    for (size_t i = 0; i < changes->len; i++) {
        const struct change *change = &changes->items[i];

        if (change->kind == CHANGE_RENAMED) {
            side_line(lines, 'R', change->from, &change->old, NULL);
            side_line(lines, 'A', change->path, NULL, &change->new);
        } else if (change->kind == CHANGE_REMOVED) {
            side_line(lines, 'R', change->path, &change->old, NULL);
        } else {
            bool added = change->kind == CHANGE_ADDED;

            side_line(lines, kinds[change->kind], change->path, added ? NULL : &change->old, &change->new);
        }
    }
}

static void check_order(const struct changes *changes)
{
    for (size_t i = 1; i < changes->len; i++)
        assert_true(strcmp(changes->items[i - 1].path, changes->items[i].path) <= 0);
}

void oracle_check(struct world *world, const char *what)
{
    struct tree base = { 0 }, merged = { 0 };
    autostrings struct strings want = STRINGS_NONE, have = STRINGS_NONE;
    autotext struct text wanted = TEXT_NONE, had = TEXT_NONE;

    check_order(&world->changes);
    read_tree(openat(world->scratch->dir, "base", O_RDONLY | O_DIRECTORY | O_CLOEXEC), "", &base);
    read_tree(openat(world->scratch->dir, "merged", O_RDONLY | O_DIRECTORY | O_CLOEXEC), "", &merged);
    compare(&base, &merged, &want);
    tell(&world->changes, &have);
    tree_free(&base);
    tree_free(&merged);
    /* Sorted without dropping what comes twice: that would be an error too. */
    size_t total = have.len;

    strings_sort(&want);
    strings_sort(&have);
    for (size_t i = 0; i < want.len; i++)
        text_addf(&wanted, "%s\n", want.items[i]);
    for (size_t i = 0; i < have.len; i++)
        text_addf(&had, "%s\n", have.items[i]);
    if (total != have.len || strcmp(text_string(&wanted), text_string(&had)) != 0) {
        autotext struct text raw = TEXT_NONE;

        for (size_t i = 0; i < world->changes.len; i++)
            world_add_line(&raw, &world->changes.items[i]);
        fail_msg("%s: wanted\n%sgot\n%sfrom\n%s", what, text_string(&wanted), text_string(&had),
                 text_string(&raw));
    }
}
