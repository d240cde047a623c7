#pragma once

struct error;
struct host;
struct spec;
struct trees;

struct workspace {
    char *root; /* the work tree: absolute, links resolved */
    char *cwd;  /* where the command starts: root or below it */
};

void workspace_free(struct workspace *workspace);

/* Finds the work tree that encloses spec->directory (the git top level, else the directory
 * itself) and adds it to `trees`, copy on write, at its own path; and, for a linked worktree, the
 * repository it belongs to.  A repository's bytes are not believed: another repository is only
 * added if it points back to this work tree.  Refuses (ERROR_REFUSED, with what to do) `/`, a
 * home directory or what encloses one, a system directory, a directory that is or holds
 * credentials, and one that encloses or lies in our state directory. */
int workspace_find(const struct spec *spec, const struct host *host, struct workspace *out, struct trees *trees,
                   struct error *err);
