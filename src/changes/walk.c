#include "changes/scan.h"

#include "base/error.h"
#include "base/own.h"
#include "changes/names.h"
#include "changes/prints.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/sysmacros.h>

/* The walk over the upper directory.
 *
 * Each directory of the upper *shows* the one of the base with the same path, or none.  An opaque directory has
 * replaced the one of the base: its entries are still compared by path, but what it does not have is removed,
 * and not seen through.  Overlays follow no renamed directory (decision 9), so the mark of one says nothing. */

struct visit {
    struct scan *scan;
    const struct job *job;
    int upper, base;         /* the directory; -1: could not be read, or shows nothing */
    struct entries *entries; /* NULL: it could not be read */
};

static int visit_all(struct visit *visit);

static int list_upper(const struct scan *scan, struct job *job, int upper, struct entries *out)
{
    size_t most = ENTRIES_MAX - scan->entries;

    return scan->source->touched ? touched_list(scan, job, upper, most, out)
                                 : scan_list(upper, most, NULL, out);
}

static int one_directory(struct scan *scan, struct job *job)
{
    autoclose int upper = scan_open(scan->source->upper, job->path, O_PATH | O_DIRECTORY);
    autoentries struct entries entries = { 0 };
    struct visit visit = { .scan = scan, .job = job, .upper = upper, .base = -1, .entries = &entries };

    if (upper < 0 || list_upper(scan, job, upper, &entries) < 0) {
        if (errno == E2BIG)
            return error_set(scan->err, ERROR_UNSUPPORTED, "the sandbox made more than %d files", ENTRIES_MAX);
        if (!*job->path)
            return error_sys(scan->err, "read the writable layer");
        visit.entries = NULL;
        return scan_is_closed(scan, errno) ? visit_all(&visit) : 0;
    }
    scan->entries += entries.len;
    scan->out->looked_at += entries.len;
    return visit_all(&visit);
}

static struct job top_job(void)
{
    return (struct job){ .path = text_copy(""), .shown = true, .change = NO_CHANGE };
}

static int walk_jobs(struct scan *scan)
{
    int result = 0;

    scan->entries = 0;
    while (result == 0 && scan->jobs.len) {
        struct job job = scan->jobs.items[--scan->jobs.len];

        result = one_directory(scan, &job);
        job_free(&job);
    }
    errno = scan->broken;
    return scan->broken && result == 0 ? error_sys(scan->err, "read the writable layer") : result;
}

/* Owns `job`.  False: it is not looked into, since what lies in it could not be named in one call. */
static bool push(struct scan *scan, struct job *job)
{
    if (strlen(job->path) > DIRECTORY_PATH_MAX) {
        job_free(job);
        return false;
    }
    *array_add(&scan->jobs) = *job;
    return true;
}

/* A mark that cannot be read is not the same as none. */
static bool is_opaque(const struct visit *visit, const char *name)
{
    errno = 0;

    bool opaque = mark_is_opaque(visit->scan->source->marks, visit->upper, name);

    if (!opaque && errno && errno != ENODATA && errno != EOPNOTSUPP && errno != ERANGE)
        (void)scan_is_closed(visit->scan, errno);
    return opaque;
}

/* The directory `name` of the upper. */
static struct job child_of(const struct visit *visit, const char *name)
{
    const struct job *job = visit->job;

    return (struct job){
        .path = scan_join(job->path, name),
        .shown = job->shown,
        .opaque = is_opaque(visit, name) || job->opaque,
        .change = NO_CHANGE,
    };
}

/* --- what the base has ----------------------------------------------------------------------- */

/* Status of `name` in the base, if it is there and the sandbox saw it there. */
static bool find_old(const struct visit *visit, const char *name, struct stat *old, unsigned *flags)
{
    struct scan *scan = visit->scan;

    if (visit->base < 0)
        return false;

    autofree char *path = scan_join(visit->job->path, name);

    if (scan_hidden(scan, path)) {
        *flags |= FLAG_HIDDEN;
        return false;
    }
    scan->out->looked_at++;
    if (fstatat(visit->base, name, old, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0) {
        *flags |= scan_is_closed(scan, errno) ? FLAG_UNREADABLE : 0;
        return false;
    }
    return !(S_ISCHR(old->st_mode) && old->st_rdev == makedev(0, 0)); /* a white-out, to the kernel */
}

static bool same_target(const struct visit *visit, const char *name)
{
    struct stat status = { .st_mode = S_IFLNK };
    struct side old = { 0 }, new = { 0 };

    scan_fill(&old, &status, visit->base, name, 0);
    scan_fill(&new, &status, visit->upper, name, 0);

    autofree char *one = old.target, *other = new.target;

    return strcmp(one, other) == 0;
}

static bool same_content(const struct visit *visit, const char *name, unsigned *flags)
{
    autoclose int old = scan_open_file(visit->base, name), new = scan_open_file(visit->upper, name);
    int same = old < 0 || new < 0 ? -1 : content_equal(visit->scan, old, new, NULL);

    *flags |= same < 0 ? FLAG_UNREADABLE : 0;
    return same > 0;
}

/* A kind, or NO_CHANGE.  Neither is a directory that the other is too. */
static int compare(const struct visit *visit, const char *name, const struct stat *old, const struct stat *new,
                   unsigned *flags)
{
    bool same = true;

    if ((old->st_mode & S_IFMT) != (new->st_mode &S_IFMT))
        return CHANGE_RETYPED;
    if (S_ISREG(new->st_mode))
        same = old->st_size == new->st_size &&same_content(visit, name, flags);
    else if (S_ISLNK(new->st_mode))
        return same_target(visit, name) ? NO_CHANGE : CHANGE_CHANGED;
    else
        same = old->st_rdev == new->st_rdev;
    if (!same)
        return CHANGE_CHANGED;
    return ((old->st_mode ^ new->st_mode) & 07777) ? CHANGE_MODE : NO_CHANGE;
}

/* --- entries --------------------------------------------------------------------------------- */

static unsigned flags_of_new(const struct scan *scan, const char *path, const char *name,
                             const struct change *change)
{
    const struct side *new = &change->new;
    unsigned flags = name_is_odd(name) ? FLAG_NAME_ODD : 0;

    if (new->type == SIDE_OTHER)
        flags |= FLAG_SPECIAL;
    if (new->type == SIDE_FILE && (new->mode &(S_ISUID | S_ISGID)))
        flags |= FLAG_SETID;
    if (new->type == SIDE_LINK) {
        enum link_place place = link_judge(path, new->target, scan->source->inside);

        flags |= place == LINK_OUT ? FLAG_LINK_OUT : place == LINK_ABSOLUTE ? FLAG_LINK_ABSOLUTE : 0;
    }
    if (scan_hidden(scan, path))
        flags |= FLAG_HIDDEN;
    return flags;
}

/* Adds the change of `entry`.  `old` is NULL if the base has nothing there, or nothing at that name. */
static struct change *record(struct visit *visit, struct entry *entry, enum change_kind kind,
                             const struct stat *new, const struct stat *old)
{
    struct scan *scan = visit->scan;
    autofree char *path = scan_join(visit->job->path, entry->name);
    size_t index = scan_add(scan, path, kind);
    struct change *change = &scan->out->items[index];

    entry->change = (ssize_t)index;
    if (new)
        scan_fill(&change->new, new, visit->upper, entry->name, scan->source->shift);
    if (old)
        scan_fill(&change->old, old, visit->base, entry->name, 0);
    if (new)
        change->flags |= flags_of_new(scan, path, entry->name, change);
    if (new &&S_ISREG(new->st_mode) && new->st_nlink > 1 && !scan->source->linked)
        change->flags |= FLAG_HARDLINK;
    /* A directory's time changes with its entries, which speak for themselves. */
    if (old && (!S_ISDIR(old->st_mode) || kind == CHANGE_MODE) && scan_is_later(scan, old))
        change->flags |= FLAG_BASE_CHANGED;
    return change;
}

static void remove_below_entry(struct visit *visit, const struct entry *entry)
{
    autofree char *path = scan_join(visit->job->path, entry->name);
    struct removal removal = { .path = path, .top = entry->change };

    removed_below(visit->scan, &removal);
}

static void visit_removed(struct visit *visit, struct entry *entry)
{
    struct stat old;
    unsigned flags = 0;

    if (!find_old(visit, entry->name, &old, &flags)) {
        if (flags & FLAG_UNREADABLE || (visit->scan->source->home && !flags))
            record(visit, entry, CHANGE_REMOVED, NULL, NULL)->flags |= flags;
        return;
    }
    record(visit, entry, CHANGE_REMOVED, NULL, &old);
    if (S_ISDIR(old.st_mode))
        remove_below_entry(visit, entry);
}

/* If the owner has removed a file that was here, its directory has changed since, or is gone too. */
static bool may_have_lost(const struct visit *visit)
{
    const struct job *job = visit->job;
    struct stat around;

    if (visit->base >= 0)
        return fstat(visit->base, &around) == 0 && scan_is_later(visit->scan, &around);
    return job->change != NO_CHANGE && (visit->scan->out->items[job->change].flags & FLAG_BASE_CHANGED);
}

/* Of something of the base. */
static bool is_copy(const struct visit *visit, const char *name, struct origin *origin)
{
    enum changes_marks marks = visit->scan->source->marks;
    autofree char *path = scan_join(visit->job->path, name);

    if (visit->scan->source->linked)
        return firstcopy_find(visit->scan, path, origin);
    if (!mark_has_origin(marks, visit->upper, name))
        return false;
    (void)mark_origin(marks, visit->upper, name, origin);
    return true;
}

/* In a user namespace the kernel notes only that a file is a copy, not of which one. */
static void note_origin(struct visit *visit, const struct entry *entry)
{
    struct orphan orphan = { .change = (size_t)entry->change };

    if (!may_have_lost(visit) || !is_copy(visit, entry->name, &orphan.origin))
        return;
    *array_add(&visit->scan->orphans) = orphan;
}

/* The base has it just so: whether that is because it was brought there. */
static bool came_home(const struct visit *visit, const struct stat *old)
{
    const struct changes_source *source = visit->scan->source;

    return source->home && (prints_have(source->ours, old) || scan_is_later(visit->scan, old));
}

static void visit_same(struct visit *visit, struct entry *entry, const struct stat *new, const struct stat *old)
{
    bool copied = mark_has_origin(visit->scan->source->marks, visit->upper, entry->name);

    if (came_home(visit, old))
        record(visit, entry, copied ? CHANGE_CHANGED : CHANGE_ADDED, new, copied ? old : NULL);
}

static void visit_file(struct visit *visit, struct entry *entry, const struct stat *new)
{
    struct stat old;
    unsigned flags = 0;
    bool had = find_old(visit, entry->name, &old, &flags);
    int kind = had ? compare(visit, entry->name, &old, new, &flags) : (int)CHANGE_ADDED;

    entry->fresh = !had;
    if (kind == NO_CHANGE) {
        visit_same(visit, entry, new, &old);
        links_note(visit->scan, new, entry->change);
        return;
    }
    record(visit, entry, (enum change_kind)kind, new, had ? &old : NULL)->flags |= flags;
    links_note(visit->scan, new, entry->change);
    /* Of several names for a copied file one may be new without anything being gone. */
    if (!had && S_ISREG(new->st_mode) && (new->st_nlink == 1 || visit->scan->source->linked))
        note_origin(visit, entry);
    if (had && S_ISDIR(old.st_mode))
        remove_below_entry(visit, entry);
}

/* Adds the change of a directory itself, if there is one; says whether it shows anything. */
static bool compare_directory(struct visit *visit, struct entry *entry, const struct stat *new)
{
    struct origin ignored;
    struct stat old;
    unsigned flags = 0;

    if (!find_old(visit, entry->name, &old, &flags)) {
        entry->fresh = true;
        if (is_copy(visit, entry->name, &ignored))
            flags |= FLAG_BASE_CHANGED; /* it is a copy of one that is not there any more */
        record(visit, entry, CHANGE_ADDED, new, NULL)->flags |= flags;
        return false;
    }
    if (!S_ISDIR(old.st_mode)) {
        record(visit, entry, CHANGE_RETYPED, new, &old);
        return false;
    }
    if ((old.st_mode ^ new->st_mode) & 07777)
        record(visit, entry, CHANGE_MODE, new, &old);
    else if (!mark_has_origin(visit->scan->source->marks, visit->upper, entry->name) && came_home(visit, &old))
        record(visit, entry, CHANGE_ADDED, new, NULL);
    return true;
}

static void visit_directory(struct visit *visit, struct entry *entry, const struct stat *new)
{
    struct job child = child_of(visit, entry->name);

    if (!compare_directory(visit, entry, new))
        child.shown = false;
    child.change = entry->change;
    if (push(visit->scan, &child))
        return;
    if (entry->change == NO_CHANGE)
        record(visit, entry, CHANGE_CHANGED, new, NULL);
    visit->scan->out->items[entry->change].flags |= FLAG_TOO_DEEP;
}

/* What an opaque directory has not is told of all at once. */
static void visit_gone(struct visit *visit, struct entry *entry)
{
    entry->whiteout = true;
    if (!visit->job->opaque)
        visit_removed(visit, entry);
}

static void visit_entry(struct visit *visit, struct entry *entry)
{
    struct stat new;

    if (fstatat(visit->upper, entry->name, &new, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0) {
        if (scan_is_closed(visit->scan, errno)) /* a directory that can be listed but not entered */
            record(visit, entry, CHANGE_ADDED, NULL, NULL)->flags |= FLAG_UNREADABLE;
        else if (visit->scan->source->touched)
            visit_gone(visit, entry);
        return;
    }
    if (mark_is_whiteout(visit->scan->source->marks, visit->upper, entry->name, &new)) {
        visit_gone(visit, entry);
        return;
    }
    if (S_ISDIR(new.st_mode))
        visit_directory(visit, entry, &new);
    else
        visit_file(visit, entry, &new);
}

/* --- directories ------------------------------------------------------------------------------ */

static void visit_closed(struct visit *visit)
{
    struct scan *scan = visit->scan;
    ssize_t change = visit->job->change;

    if (change == NO_CHANGE)
        change = (ssize_t)scan_add(scan, visit->job->path, CHANGE_CHANGED);
    scan->out->items[change].flags |= FLAG_UNREADABLE;
}

static void flag_empty(const struct visit *visit)
{
    struct change *own = visit->job->change == NO_CHANGE ? NULL : &visit->scan->out->items[visit->job->change];

    if (!own || (own->kind != CHANGE_ADDED && own->kind != CHANGE_RETYPED))
        return;
    for (size_t i = 0; i < visit->entries->len; i++)
        if (!visit->entries->items[i].whiteout)
            return;
    own->flags |= FLAG_EMPTY;
}

static int visit_all(struct visit *visit)
{
    struct scan *scan = visit->scan;
    const struct job *job = visit->job;
    autoclose int base = job->shown ? scan_open(scan->source->base, job->path, O_PATH | O_DIRECTORY) : -1;

    if (base < 0 && job->shown)
        (void)scan_is_closed(scan, errno);
    if (!visit->entries) {
        visit_closed(visit);
        return 0;
    }
    if (base < 0 && !*job->path)
        return error_sys(scan->err, "open the workspace");
    visit->base = base;
    for (size_t i = 0; i < visit->entries->len; i++)
        visit_entry(visit, &visit->entries->items[i]);
    flag_empty(visit);
    twins_flag(scan, job, base, visit->entries);
    if (job->opaque && base >= 0) {
        struct removal removal = { .path = job->path, .stays = visit->entries, .top = NO_CHANGE };

        removed_below(scan, &removal);
    }
    return 0;
}

int walk_changes(struct scan *scan)
{
    *array_add(&scan->jobs) = top_job();
    return walk_jobs(scan);
}

/* --- one path ---------------------------------------------------------------------------------- */

/* The directory around the last component of `path`; false if the upper has no such directory. */
static bool find_job(struct scan *scan, const char *path, struct job *job)
{
    *job = top_job();
    for (const char *slash; (slash = strchr(path, '/')); path = slash + 1) {
        autofree char *name = text_format("%.*s", (int)(slash - path), path);
        autoclose int upper = scan_open(scan->source->upper, job->path, O_PATH | O_DIRECTORY);
        struct visit visit = { .scan = scan, .job = job, .upper = upper, .base = -1 };

        if (upper < 0) {
            job_free(job);
            return false;
        }

        struct job child = child_of(&visit, name);

        job_free(job);
        *job = child;
    }
    return true;
}

static void visit_one(struct visit *visit, const char *name, unsigned how)
{
    autofree char *own = text_copy(name);
    struct entry entry = { .name = own, .change = NO_CHANGE };
    struct stat status;

    if (fstatat(visit->upper, name, &status, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0 &&
        scan_is_gone(errno)) {
        if (visit->job->opaque || (how & CHANGES_GONE))
            visit_removed(visit, &entry);
        return;
    }
    visit_entry(visit, &entry);
}

int walk_at(struct scan *scan, const char *path, unsigned how)
{
    const char *slash = strrchr(path, '/');
    struct job job;

    if (!*path)
        return walk_changes(scan);
    if (!find_job(scan, path, &job))
        return 0;

    autoclose int upper = scan_open(scan->source->upper, job.path, O_PATH | O_DIRECTORY);
    autoclose int base = job.shown ? scan_open(scan->source->base, job.path, O_PATH | O_DIRECTORY) : -1;
    struct visit visit = { .scan = scan, .job = &job, .upper = upper, .base = base };

    if (upper >= 0)
        visit_one(&visit, slash ? slash + 1 : path, how);
    job_free(&job);
    return how & CHANGES_BELOW ? walk_jobs(scan) : 0;
}
