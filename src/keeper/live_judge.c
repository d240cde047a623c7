#include "keeper/live_judge.h"

#include "base/array.h"
#include "base/own.h"
#include "base/text.h"
#include "changes/classify.h"
#include "changes/patch.h"
#include "changes/plainname.h"
#include "changes/review.h"
#include "sys/sys.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* --- the class --- */

/* Of a file whose mode alone changes the bytes stay the host's. */
static bool is_autorun(const struct live_sides *sides, const struct change *change, int copy,
                       struct classify_verdict *verdict)
{
    struct patch_source source = { change->kind == CHANGE_MODE ? sides->base : sides->upper, sides->base,
                                   false };

    review_judge(&source, change, NULL, copy, verdict, NULL);
    return verdict->class == CLASSIFY_AUTORUN;
}

/* A directory in which any file would be of that class is not even made. */
static bool is_autorun_directory(const struct change *change, struct classify_verdict *verdict)
{
    autofree char *inside = text_format("%s/x", change->path);
    struct classify_input input = { .path = inside, .path_len = strlen(inside) };
    struct classify_side file = { .mode = S_IFREG | 0644, .bytes = "x", .len = 1 };

    if (change->new.type != SIDE_DIRECTORY && change->old.type != SIDE_DIRECTORY)
        return false;
    if (change->new.type == SIDE_DIRECTORY)
        input.new = file;
    else
        input.old = file;
    classify(&input, verdict);
    return verdict->class == CLASSIFY_AUTORUN;
}

/* --- git --- */

bool judge_is_gits(const char *path)
{
    struct plainname name;

    plainname_clear(&name);
    if (!plainname_add(&name, path, strlen(path)))
        return true;
    return plainname_compare(".git", &name) == PLAINNAME_YES ||
           plainname_compare(".git/", &name) == PLAINNAME_YES;
}

/* Whether the directory around `name`, which begins there in `path`, is a repository by its looks as soon
 * as `name` is in it.  Only names that the host has count: what is still inside runs nothing. */
static bool completes_repository(const struct live_sides *sides, const char *path, const char *name)
{
    const char *names[CLASSIFY_TELLING + 1];
    autofree char *around = name > path ? text_format("%.*s", (int)(name - path - 1), path) : text_copy(".");
    autofree char *own = text_format("%.*s", (int)strcspn(name, "/"), name);
    autoclose int dir = sys_open_beneath(sides->base, around, O_PATH | O_DIRECTORY);
    size_t count = 0;
    struct stat ignored;

    names[count++] = own;
    for (size_t i = 0; dir >= 0 && i < CLASSIFY_TELLING; i++)
        if (fstatat(dir, classify_telling[i], &ignored, AT_SYMLINK_NOFOLLOW) == 0)
            names[count++] = classify_telling[i];
    return classify_bare_repository(names, count);
}

/* A repository may have any name; it must neither come to be piece by piece, nor get a hook. */
static bool is_in_repository(const struct live_sides *sides, const char *path)
{
    for (const char *name = path; name; name = strchr(name, '/')) {
        name += *name == '/';
        if (completes_repository(sides, path, name))
            return true;
    }
    return false;
}

const char *judge_waits(const struct live_sides *sides, const struct change *change, int copy)
{
    struct classify_verdict verdict;

    if (judge_is_gits(change->path))
        return "it is git's own";
    if (is_in_repository(sides, change->path))
        return "git would take its directory for a repository";
    if (change->kind != CHANGE_MODE && is_autorun_directory(change, &verdict))
        return verdict.reason;
    return is_autorun(sides, change, copy, &verdict) ? verdict.reason : NULL;
}

/* --- the owner --- */

static bool is_later(struct timespec time, struct timespec since)
{
    return time.tv_sec > since.tv_sec || (time.tv_sec == since.tv_sec && time.tv_nsec >= since.tv_nsec);
}

static bool is_what_we_put(const struct known *known, const struct stat *status)
{
    return known && known->state == KNOWN_OURS && known->put.inode == status->st_ino &&
           known->put.size == status->st_size && known->put.mtime.tv_sec == status->st_mtim.tv_sec &&
           known->put.mtime.tv_nsec == status->st_mtim.tv_nsec;
}

bool judge_is_owners(const struct live_sides *sides, const struct known *known, const struct change *change)
{
    autoclose int there = -1;
    struct stat status;

    if (change->flags & FLAG_BASE_CHANGED)
        return true;
    if (change->old.type == SIDE_NONE) /* removed, if there was something */
        return known && known->based;
    there = sys_open_beneath(sides->base, change->path, O_PATH);
    if (there < 0 || fstat(there, &status) < 0)
        return true;
    if (S_ISDIR(status.st_mode)) /* what is in it speaks for itself */
        return false;
    return is_later(status.st_ctim, sides->since) && !is_what_we_put(known, &status);
}
