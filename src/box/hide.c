#include "box/hide.h"

#include "base/array.h"
#include "base/error.h"
#include "base/glob.h"
#include "base/own.h"
#include "base/text.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

enum {
    DEPTH_MAX = 256,     /* each level holds one descriptor */
    FOUND_MAX = 1 << 16, /* each is one white-out at start */
};

/* One pattern, taken apart once: it meets every file of the tree. */
struct rule {
    char *pattern;
    bool anywhere, only_directories;
};

struct rules {
    struct rule *items;
    size_t len, cap;
};

struct hunt {
    struct rules rules;
    struct strings *found;
    struct text path; /* of the directory we are in; "" at the top */
    int depth;
    struct error *err;
};

int hide_check_pattern(const char *pattern, struct error *err)
{
    if (!*pattern || strspn(pattern, "/") == strlen(pattern))
        return error_set(err, ERROR_INVALID,
                         "files.hide: an empty pattern hides nothing; name a file, or * for all");
    if (*pattern == '!')
        return error_set(err, ERROR_INVALID,
                         "files.hide: '%.200s': exceptions are not known; for a name that begins so write \\!",
                         pattern);
    return 0;
}

/* A slash at the end is no part of the name, one elsewhere ties the pattern to the tree. */
static void read_patterns(const struct strings *patterns, struct rules *out)
{
    for (size_t i = 0; i < patterns->len; i++) {
        const char *pattern = patterns->items[i];
        size_t len = strlen(pattern);

        while (pattern[len - 1] == '/')
            len--;
        *array_add(out) = (struct rule){
            .pattern = text_format("%.*s", (int)len, pattern),
            .only_directories = pattern[len] == '/',
            .anywhere = !memchr(pattern, '/', len),
        };
    }
}

static void free_rules(struct rules *rules)
{
    for (size_t i = 0; i < rules->len; i++)
        free(rules->items[i].pattern);
    free(rules->items);
}

/* GLOB_YES: hidden.  GLOB_ABOVE: something below it could be. */
static enum glob_place judge(const struct hunt *hunt, const char *name, bool directory)
{
    enum glob_place best = GLOB_NO;

    for (size_t i = 0; i < hunt->rules.len; i++) {
        const struct rule *rule = &hunt->rules.items[i];
        enum glob_place where;

        if (rule->anywhere)
            where = glob_match(rule->pattern, name) ? GLOB_YES : GLOB_ABOVE;
        else
            where = glob_compare(rule->pattern, text_string(&hunt->path));
        if (where == GLOB_BELOW) /* of two stars alone, which have the tree itself */
            return GLOB_YES;
        if (where == GLOB_YES && (directory || !rule->only_directories))
            return GLOB_YES;
        if (where == GLOB_ABOVE)
            best = GLOB_ABOVE;
    }
    return best;
}

static int add(struct hunt *hunt)
{
    if (hunt->found->len >= FOUND_MAX)
        return error_set(
            hunt->err, ERROR_INVALID,
            "files.hide matches more than %d files; use a narrower pattern, or hide their directory",
            FOUND_MAX);
    strings_add(hunt->found, text_string(&hunt->path));
    return 0;
}

static bool is_directory(int dir, const struct dirent *entry)
{
    struct stat found;

    if (entry->d_type != DT_UNKNOWN)
        return entry->d_type == DT_DIR;
    return fstatat(dir, entry->d_name, &found, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(found.st_mode);
}

static int hunt_in(struct hunt *hunt, int dir);

static bool is_git_objects(const char *path)
{
    return strcmp(path, ".git/objects") == 0 || text_ends(path, "/.git/objects");
}

/* Goes into the directory hunt->path, called `name` in `dir`. */
static int descend(struct hunt *hunt, int dir, const char *name)
{
    if (strcmp(name, "objects") == 0 && is_git_objects(text_string(&hunt->path)))
        return 0;
    if (hunt->depth >= DEPTH_MAX || hunt->path.len >= PATH_MAX)
        return error_set(hunt->err, ERROR_UNSUPPORTED,
                         "directories are nested too deep to look for files to hide in %.200s",
                         text_string(&hunt->path));

    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && (errno == EACCES || errno == EPERM))
        return add(hunt);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)) /* replaced meanwhile */
        return 0;
    if (fd < 0)
        return error_sys(hunt->err, "look for files to hide in %.200s", text_string(&hunt->path));

    hunt->depth++;
    int result = hunt_in(hunt, fd);
    hunt->depth--;
    return result;
}

static int visit(struct hunt *hunt, int dir, const struct dirent *entry)
{
    bool directory = is_directory(dir, entry);
    enum glob_place where = judge(hunt, entry->d_name, directory);

    if (where == GLOB_YES)
        return add(hunt);
    return where == GLOB_ABOVE && directory ? descend(hunt, dir, entry->d_name) : 0;
}

/* Owns `dir`. */
static int hunt_in(struct hunt *hunt, int dir)
{
    autoclosedir DIR *entries = fdopendir(dir);
    size_t before = hunt->path.len;
    int result = 0;

    if (!entries) {
        error_sys(hunt->err, "look for files to hide");
        close(dir);
        return -1;
    }
    for (const struct dirent *entry; result == 0 && (entry = sys_next_entry(entries));) {
        text_add(&hunt->path, before ? "/" : "");
        text_add(&hunt->path, entry->d_name);
        result = visit(hunt, dir, entry);
        text_cut(&hunt->path, before);
    }
    if (result == 0 && errno)
        result = error_sys(hunt->err, "look for files to hide in %.200s", text_string(&hunt->path));
    return result;
}

int hide_find(int dir, const struct strings *patterns, struct strings *found, struct error *err)
{
    struct hunt hunt = { .found = found, .err = err };

    if (!patterns->len)
        return 0;
    for (size_t i = 0; i < patterns->len; i++)
        if (hide_check_pattern(patterns->items[i], err) < 0)
            return -1;

    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_sys(err, "look for files to hide");
    read_patterns(patterns, &hunt.rules);
    int result = hunt_in(&hunt, fd);
    free_rules(&hunt.rules);
    text_free(&hunt.path);
    strings_sort(found);
    return result;
}
