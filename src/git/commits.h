#pragma once

/* Commits that were made in a sandbox, and their way home: as objects, not as files of a repository.
 *
 * References are read by our own code.  A first git, contained, packs what the owner does not have; a
 * second one, contained, which sees the pack and the owner's objects and nothing of the sandbox,
 * checks it object by object.  Only then is it laid beside the owner's packs, and a new reference
 * refs/heads/cove/NAME/BRANCH made.  Nothing that exists is written to. */

#include "git/land.h"
#include "git/refs.h"
#include "git/repository.h"
#include "git/shadow.h"

struct commit {
    char hash[HASH_MAX + 1];
    char *subject; /* bytes of the sandbox */
};

/* One branch with commits that the owner does not have. */
struct branch {
    size_t repository; /* index */
    char *name;        /* as inside, or "detached"; bytes of the sandbox, but a name that git allows */
    char hash[HASH_MAX + 1];
    char *home; /* "cove/NAME/BRANCH", of harmless characters: what it is, or will be, called */
    uint64_t count;
    struct {
        struct commit *items; /* newest first, COMMITS_SHOWN at most */
        size_t len, cap;
    } commits;
    bool broken; /* objects are missing, or are none: it cannot be brought home */
};

enum { COMMITS_SHOWN = 1000 };

/* What we know of one repository besides. */
struct commits_side {
    struct refs refs;      /* the owner's: all of them */
    struct strings hashes; /* where they point, sorted, and the owner's HEAD */
    struct shadow shadow;  /* with the objects of the sandbox, once there was a reason to make it */
};

struct commits {
    const struct host *host;
    char *sandbox; /* NAME */
    struct repositories repositories;
    struct commits_side *sides; /* one a repository */
    struct {
        struct branch *items;
        size_t len, cap;
    } branches;
    size_t odd; /* references that are none, see struct refs */
};

#define COMMITS_NONE ((struct commits){ 0 })
#define autocommits __attribute__((cleanup(commits_free)))

/* Finds the commits of the sandbox in the directory `dir`.  git is only asked if a reference changed. */
int commits_find(const struct host *host, int dir, const struct record *record, struct commits *out,
                 struct error *err);
void commits_free(struct commits *commits);

/* Brings one branch home, or says why not; the owner's repository is then as it was, but for a pack
 * that no reference leads to.  Can be done again at any time. */
int commits_bring(struct commits *commits, struct branch *branch, struct error *err);

/* A file with the commits of one branch, oldest first, each as a mail that git-am(1) takes: a line
 * "HASH SIZE", then so many bytes.  Merges are left out. */
int commits_mail(struct commits *commits, const struct branch *branch, struct error *err);
