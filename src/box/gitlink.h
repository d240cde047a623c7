#pragma once

#include "box/place.h"

/* What the `.git` of a directory says, and what of it is true.
 *
 * A work tree whose `.git` is a file names a git directory elsewhere.  That file came with the
 * repository, so it is not believed: the git directory, which did not, must point back.  Nothing
 * is run, nothing is interpreted beyond one path; files are opened without following links and
 * read up to a small bound. */
enum git_kind {
    GIT_NONE,      /* no .git here that git would take */
    GIT_TOP,       /* an ordinary work tree */
    GIT_WORKTREE,  /* a linked work tree; `common` is its repository's git directory */
    GIT_SUBMODULE, /* its git directory lies in the superproject's, if that one agrees */
    GIT_BROKEN,    /* a .git file that points nowhere, or to what does not point back */
};

struct gitlink {
    enum git_kind kind;
    char *directory;     /* the git directory; NULL for GIT_NONE and GIT_BROKEN */
    struct place common; /* GIT_WORKTREE only */
    uid_t owner;         /* of .git */
};

#define GITLINK_NONE ((struct gitlink){ .common = { .fd = -1 } })
#define autogitlink __attribute__((cleanup(gitlink_free)))

void gitlink_read(const struct place *tree, struct gitlink *out);
void gitlink_free(struct gitlink *link);
