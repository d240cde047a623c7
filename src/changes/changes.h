#pragma once

#include "base/array.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* What a sandbox changed in its workspace, read from the writable layer of its overlay (the upper
 * directory) beside the owner's tree (the base).  It costs the changes, never the tree.
 *
 * The upper was written by a hostile program; the base may change while it is read.  Nothing is
 * followed, nothing but regular files and directories is opened, nothing is written, and what
 * disappears meanwhile is passed over.  Names and link targets are bytes of that program: make them
 * inert before a person sees them. */

struct error;

enum change_kind {
    CHANGE_REMOVED,
    CHANGE_ADDED,
    CHANGE_CHANGED, /* other content or link target, maybe another mode */
    CHANGE_MODE,    /* only another mode */
    CHANGE_RETYPED, /* a file became a link, a directory a file, ... */
    CHANGE_RENAMED, /* only then `from` tells what it was; a file with the same bytes */
};

enum side_type {
    SIDE_NONE, /* there is nothing on this side */
    SIDE_FILE,
    SIDE_LINK,
    SIDE_DIRECTORY,
    SIDE_OTHER, /* FIFO, socket or device */
};

/* One of the two states of a path. */
struct side {
    enum side_type type;
    mode_t mode;     /* & 07777 */
    uid_t uid;       /* as the sandbox sees it; (uid_t)-1: not one of its own */
    gid_t gid;       /* likewise */
    uint64_t size;   /* bytes of a file, else 0 */
    uint64_t stored; /* what of it takes room on the disk: a hole does not */
    struct timespec mtime;
    char *target; /* of a link, else NULL */
};

enum change_flag {
    FLAG_EMPTY = 1 << 0,         /* a new directory with nothing in it */
    FLAG_LINK_OUT = 1 << 1,      /* by its text, a link that leaves the workspace */
    FLAG_LINK_ABSOLUTE = 1 << 2, /* an absolute link into the workspace as it is called inside */
    FLAG_HARDLINK = 1 << 3,      /* a file with several names, made so inside */
    FLAG_SETID = 1 << 4,         /* a file with a setuid or setgid bit */
    FLAG_SPECIAL = 1 << 5,       /* FIFO, socket or device */
    FLAG_HIDDEN = 1 << 6,        /* the owner has something here that the sandbox never saw */
    FLAG_BASE_CHANGED = 1 << 7,  /* the owner changed, removed or made it since; rather once too often */
    FLAG_TWIN = 1 << 8,          /* a new name that some would take for another one beside it */
    FLAG_NAME_ODD = 1 << 9,      /* control character, no UTF-8, dash in front, blank at the end */
    FLAG_UNREADABLE = 1 << 10,   /* a side could not be read: CHANGED is assumed, or content is missing */

    /* Set by review_changes() only. */
    FLAG_TRICK = 1 << 11,      /* its new lines are not what they look like */
    FLAG_HIDES = 1 << 12,      /* it makes git look away from something */
    FLAG_UNSEEN = 1 << 13,     /* git ignores it, but only by rules that the sandbox wrote */
    FLAG_LEFT_OUT = 1 << 14,   /* git ignores it by the owner's rules */
    FLAG_REPOSITORY = 1 << 15, /* in a directory that git takes for a repository by what is in it */

    FLAG_TOO_DEEP = 1 << 16, /* a directory that was not looked into: no system call takes paths so long */
};

struct change {
    char *path; /* relative to the workspace; any bytes but NUL */
    enum change_kind kind;
    unsigned flags;       /* of enum change_flag */
    struct side old, new; /* in the base, in the sandbox */

    /* Where it lies in the base if that is not `path`: what was renamed, and what lies below a
     * renamed directory.  NULL: at `path`, or nowhere. */
    char *from;

    /* More than zero: so many entries of the base below it are removed too, but not listed, because
     * there are too many.  If new.type is a directory, it is itself still there.  Its flags tell what
     * any of them would have told. */
    uint64_t count;
};

/* Sorted by the bytes of their paths.  A path comes twice only where a renamed directory took the place
 * of something (REMOVED, then RENAMED), or where a directory that is still there lost more than is
 * listed (REMOVED with a count, then MODE).  All renames of directories happen at once and first;
 * everything else is relative to the tree after them. */
struct changes {
    struct change *items;
    size_t len, cap;
    uint64_t looked_at; /* directory entries of both sides: what the scan has cost */
    bool twins_unsure;  /* a directory of the base was too big: only usual twins were looked for in it */
};

#define CHANGES_NONE ((struct changes){ 0 })
#define autochanges __attribute__((cleanup(changes_free)))

/* Whose extended attributes the kernel obeyed when it wrote the upper.  The other ones are what the
 * command likes them to be. */
enum changes_marks {
    CHANGES_MARKS_USER,    /* user.overlay.*: mounted with userxattr */
    CHANGES_MARKS_TRUSTED, /* trusted.overlay.*: mounted by the host's root */
};

struct changes_source {
    int upper, base; /* directories; O_PATH is enough */
    enum changes_marks marks;
    const char *inside;         /* absolute path of the workspace inside the sandbox */
    const struct strings *hide; /* paths of the base, relative, that were hidden; or NULL */

    /* When the sandbox began, by CLOCK_REALTIME_COARSE: files are stamped by that one or later, so what
     * was changed a few milliseconds before may be flagged, but nothing is missed.  Zero: what the owner
     * changed is not judged by time. */
    struct timespec since;

    /* What we put there ourselves since; or NULL. */
    const struct prints *ours;

    /* Also what the base has by now just as the sandbox made it, if it got it since: as added, or, if the
     * kernel noted that it is a copy, as changed. */
    bool home;

    /* The upper consists of hard links to layers that lay on each other: how many names a file has says
     * nothing, nor that it is a copy, which may be one of a layer below.  `line` names those layers, newest
     * first, below `line_at`; without, of what the owner has removed and the sandbox changed it cannot be told
     * that it was there. */
    bool linked;
    const struct strings *line;
    int line_at;

    /* Not NULL: upper and base are both whole trees without marks, which differ at most by names that one of
     * these directories has at the same path; they are layers, and their marks count. */
    const int *touched;
    size_t touched_count;
    bool beside; /* they are two, one on top of either tree: a file that is one inode in both is the same */

    /* Inside, an id is less by this than in the upper.  Those of the base are the same. */
    uid_t shift;
};

/* The workspace's own directory is not judged, only what is in it.  Owners, times and extended attributes
 * alone are no change.  More than a million entries in the upper are an error. */
int changes_scan(const struct changes_source *source, struct changes *out, struct error *err);

enum changes_how {
    CHANGES_BELOW = 1 << 0, /* of a directory, also what lies below it */
    CHANGES_GONE = 1 << 1,  /* if the upper has nothing there, it was removed */
};

/* The same for one path alone ("": the whole tree).  It costs no more than that: a renamed file is one that
 * was removed and one that was added, and that the owner removed something may not be noticed. */
int changes_scan_at(const struct changes_source *source, const char *path, unsigned how, struct changes *out,
                    struct error *err);

/* The change of this path, or NULL. */
struct change *changes_find(const struct changes *changes, const char *path);

void changes_free(struct changes *changes);
