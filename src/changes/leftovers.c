#include "base/own.h"
#include "changes/digest.h"
#include "changes/place.h"
#include "changes/scan.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char prefix[] = ".cove-apply-";

void leftover_name(const char *name, char out[BESIDE_MAX])
{
    uint64_t hash = 0xcbf29ce484222325ULL;

    for (const char *at = name; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 0x100000001b3ULL;
    snprintf(out, BESIDE_MAX, "%s%016" PRIx64, prefix, hash);
}

bool leftover_is(const char *name)
{
    return text_starts(name, prefix) && strlen(name) == strlen(prefix) + 16 &&
           strspn(name + strlen(prefix), "0123456789abcdef") == 16;
}

static bool is_before(struct timespec a, struct timespec b)
{
    return a.tv_sec < b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec < b.tv_nsec);
}

static bool is_same_file(int tree, const char *left, int upper, const char *path)
{
    autoclose int one = scan_open_file(tree, left), other = scan_open_file(upper, path);
    struct digest a, b;

    return one >= 0 && other >= 0 && digest_file(one, &a) == 0 && digest_file(other, &b) == 0 &&
           digest_equal(&a, &b);
}

static bool is_same_link(int tree, const char *left, int upper, const char *path)
{
    struct link_target one = place_target(tree, left), other = place_target(upper, path);

    return *one.text && strcmp(one.text, other.text) == 0;
}

/* Five kinds: a copy of ours that is not finished (it has no rights yet) or that is, or was put while the
 * sandbox ran; what the sandbox saw
 * there and had replaced or removed; a directory, which goes only if it is empty.  What was written
 * since by somebody else may be the only copy of something. */
static bool is_expendable(const struct task *task, const char *path, const struct stat *left)
{
    if (S_ISDIR(left->st_mode) || is_before(left->st_mtim, task->apply->since) ||
        prints_have(task->apply->ours, left))
        return true;
    if (S_ISREG(left->st_mode))
        return !(left->st_mode & 07777) || is_same_file(task->parent, task->beside, task->apply->upper, path);
    return S_ISLNK(left->st_mode) && is_same_link(task->parent, task->beside, task->apply->upper, path);
}

int leftover_clear(struct task *task, const char *path)
{
    struct stat left;

    if (fstatat(task->parent, task->beside, &left, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : place_failed(task, "look for an earlier try");
    if (!is_expendable(task, path, &left)) {
        error_set(&task->result->why, ERROR_REFUSED, "%s beside it may be yours; look at it, then remove it",
                  task->beside);
        task->result->outcome = APPLY_CONFLICT;
        return -1;
    }
    if (unlinkat(task->parent, task->beside, S_ISDIR(left.st_mode) ? AT_REMOVEDIR : 0) < 0 && errno != ENOENT)
        return place_failed(task, "remove what an earlier try left");
    return 0;
}

/* --- everywhere --- */

static void sweep_directory(const struct apply *apply, const char *path, struct strings *below)
{
    autoclose int upper = scan_open(apply->upper, path, O_PATH | O_DIRECTORY);
    autoclose int tree = scan_open(apply->tree, path, O_PATH | O_DIRECTORY);
    autoentries struct entries entries = { 0 };

    if (upper < 0 || tree < 0 || scan_list(upper, ENTRIES_MAX, NULL, &entries) < 0)
        return;
    for (size_t i = 0; i < entries.len; i++) {
        const struct entry *entry = &entries.items[i];
        autofree char *own = scan_join(path, entry->name);
        struct apply_result ignored = { 0 };
        struct task task = { .apply = apply, .parent = tree, .name = entry->name, .result = &ignored };

        leftover_name(entry->name, task.beside);
        (void)leftover_clear(&task, own); /* whoever needs the place will say it */
        if (entry->type == DT_DIR || entry->type == DT_UNKNOWN)
            strings_take(below, steal_ptr(&own));
    }
}

void leftovers_sweep(const struct apply *apply)
{
    autostrings struct strings left = STRINGS_NONE;

    strings_add(&left, "");
    while (left.len) {
        autofree char *path = left.items[--left.len];

        left.items[left.len] = NULL;
        sweep_directory(apply, path, &left);
    }
}
