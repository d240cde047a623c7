#pragma once

/* Inside changes/ only: one scan, and what its parts share.
 *
 * A directory is opened by its whole path beneath the upper's or the base's handle, read to its end and
 * closed before the next one.  So depth costs neither descriptors nor stack, and what a path may be is
 * bounded by what one system call takes. */

#include "base/text.h"
#include "changes/changes.h"
#include "changes/marks.h"

#include <limits.h>
#include <sys/stat.h>

enum {
    DIRECTORY_PATH_MAX =
        PATH_MAX - NAME_MAX - 2, /* bytes of a directory's path: what lies in it can still be named */
    ENTRIES_MAX = 1 << 20,       /* in the upper; a change takes some 200 bytes */
    LISTED_MAX = 100000,         /* removed entries, all directories together */
    COUNTED_MAX = 1 << 20,       /* of what is not listed */
    TWIN_NAMES_MAX = 512,        /* of a directory of the base read in search of twins */
    CANDIDATES_MAX = 1000,       /* on each side of a rename */
    RENAME_BYTES_MAX = 64 << 20, /* read in search of renames */
    ORPHANS_MAX = 10000,         /* handles of the base asked for */
    NO_CHANGE = -1,
};

struct entry {
    char *name;
    unsigned char type; /* DT_... */
    bool whiteout;
    bool fresh;     /* the base has no such name */
    ssize_t change; /* index of its change, or NO_CHANGE */
};

/* The entries of one directory, sorted by name. */
struct entries {
    struct entry *items;
    size_t len, cap;
};

#define autoentries __attribute__((cleanup(entries_free)))
void entries_free(struct entries *entries);
const struct entry *entries_find(const struct entries *entries, const char *name);

/* A directory that is still to be looked into. */
struct job {
    char *path; /* in the upper and the base; "" is their root */
    bool shown; /* it shows what the base has there; else nothing of the base */
    bool opaque;
    ssize_t change; /* its own, or NO_CHANGE */
};

struct jobs {
    struct job *items;
    size_t len, cap;
};

void job_free(struct job *job);

/* A new file that is a copy of a file of the base, under a name that the base does not have, or has not any
 * more: the owner has changed something beside it. */
struct orphan {
    size_t change;
    struct origin origin; /* empty: unknown */
};

/* A file of an upper of hard links that has more names, here or elsewhere. */
struct link {
    dev_t device;
    ino_t inode;
    ssize_t change; /* or NO_CHANGE */
};

struct scan {
    const struct changes_source *source;
    struct changes *out;
    struct error *err;
    struct jobs jobs;
    struct {
        struct orphan *items;
        size_t len, cap;
    } orphans;
    struct {
        struct link *items;
        size_t len, cap;
    } links;
    struct {
        const char **items; /* sorted; the strings are the source's */
        size_t len, cap;
    } hidden;
    uint64_t entries, listed;
    int broken;   /* errno, if a disk or so failed: then nothing can be told for sure */
    char *buffer; /* for contents */
};

/* --- scan.c: handles, lists, judgements ------------------------------------------------------- */

/* Opens beneath `dir` without a link or another mount on the way.  `path` may be "". */
int scan_open(int dir, const char *path, int flags);

/* A regular file for reading, judged by its handle before it is opened.  -1: anything else. */
int scan_open_file(int dir, const char *path);

/* Why a directory could not be opened: it is gone, or nothing of the kind.  Else it is only closed. */
bool scan_is_gone(int error);

/* After a call that failed.  True if what it was about is closed to us; what failed in an unusual way is
 * noted in scan->broken. */
bool scan_is_closed(struct scan *scan, int error);

/* Reads a directory to its end.  More than `most` entries: *cut becomes true if given, else it is an
 * error.  -1 and errno, E2BIG for that error. */
int scan_list(int dir, size_t most, bool *cut, struct entries *out);

char *scan_join(const char *dir, const char *name); /* the caller frees */

/* True if `path` of the base, or a directory around it, is hidden. */
bool scan_hidden(const struct scan *scan, const char *path);

/* True if the owner changed what has this status after the sandbox began. */
bool scan_is_later(const struct scan *scan, const struct stat *status);

/* Adds a change and gives its index. */
size_t scan_add(struct scan *scan, const char *path, enum change_kind kind);

void scan_fill(struct side *side, const struct stat *status, int dir, const char *name, uid_t shift);

/* --- the parts ------------------------------------------------------------------------------- */

/* Fills scan->out with everything but renamed files. */
int walk_changes(struct scan *scan);
/* The same for one path; `how` is of enum changes_how. */
int walk_at(struct scan *scan, const char *path, unsigned how);

/* Where both sides are whole trees: the names of a directory that may differ.  If all of them may, `job`
 * becomes opaque, and they are those of `upper`, as always where the base shows nothing.  -1 and errno as
 * scan_list(). */
int touched_list(const struct scan *scan, struct job *job, int upper, size_t most, struct entries *out);

/* Lists what the base has below `path` as removed; what `stays` names is passed over at the first level.
 * `top` is the change that gets the count if there is too much; NO_CHANGE: one is made for `path`, which is
 * then a directory that is still there. */
struct removal {
    const char *path;
    const struct entries *stays; /* or NULL */
    ssize_t top;
};
void removed_below(struct scan *scan, const struct removal *removal);

/* 1: the same bytes, 0: not, -1: one of them could not be read.  `budget`, unless NULL, is lessened by
 * what is read; at 0 the answer is -1. */
int content_equal(struct scan *scan, int one, int other, uint64_t *budget);

/* Where data begins at or behind `at`; a hole up to the end is `size`. */
off_t content_data(int fd, off_t at, off_t size);

/* As much of `len` bytes as there is; -1 and errno. */
ssize_t content_read(int fd, off_t at, char *into, size_t len);

/* All of a regular file that has at most `most` bytes; false: anything else. */
bool content_text(int dir, const char *path, size_t most, struct text *out);

/* Of an upper of hard links: whether what is at `path` was a copy of the base when a layer first had it, and of
 * which file, as far as that is known. */
bool firstcopy_find(const struct scan *scan, const char *path, struct origin *origin);

/* Notes a file of such an upper, with its change; flags those that have several names in it. */
void links_note(struct scan *scan, const struct stat *status, ssize_t change);
void links_flag(struct scan *scan);

/* Flags new names of a directory that some would take for another one in it. */
void twins_flag(struct scan *scan, const struct job *job, int base, const struct entries *entries);

/* Makes one change of a removed and an added file with the same bytes. */
void renames_pair(struct scan *scan);
/* Flags new files whose original the owner has removed. */
void orphans_flag(struct scan *scan);

void change_free(struct change *change);
