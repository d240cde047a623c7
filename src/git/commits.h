#pragma once

/* Commits that were made in a sandbox, and their way home: as objects, not as files of a repository.
 *
 * References are read by our own code.  A first git, contained, packs what the owner does not have; a
 * second one, contained, which sees the pack and the owner's objects and nothing of the sandbox,
 * checks it object by object.  Only then is it laid beside the owner's packs, and a new reference
 * refs/heads/cove/NAME/BRANCH made.  Nothing that exists is written to. */

#include "git/carried.h"
#include "git/parcel.h"
#include "git/refs.h"
#include "git/repository.h"
#include "git/shadow.h"

struct commit {
    char hash[HASH_MAX + 1];
    char *subject; /* bytes of the sandbox */
};

/* What a branch is called. */
struct branch_name {
    char *inside; /* or "detached"; bytes of the sandbox, but a name that git allows */
    char *home;   /* "cove/NAME/BRANCH", of harmless characters: what it is, or would be, called */
    char *in_way; /* the owner's branch, for which it cannot be called so; NULL: none */
};

/* One tip with commits that the owner does not have. */
struct branch {
    size_t repository; /* index */
    char hash[HASH_MAX + 1];
    struct {
        struct branch_name *items; /* at least one: those that lead to this tip */
        size_t len, cap;
    } names;
    uint64_t count;
    struct {
        struct commit *items; /* newest first, COMMITS_SHOWN at most */
        size_t len, cap;
    } commits;
    bool broken;            /* objects are missing, or are none: it cannot be brought home */
    struct carried carried; /* after commits_judge() or commits_pack() */
};

enum { COMMITS_SHOWN = 1000 };

/* What we know of one repository besides. */
struct commits_side {
    struct refs refs;      /* the owner's: all of them */
    struct strings hashes; /* where they point, sorted, and the owner's HEADs: what need not be brought */
    struct strings mine;   /* the same without what was only fetched, or brought home by us: what was on a
                              branch of the owner's own needs no judging */
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

/* What the commits of a branch change and which of it can run, as the git that sees the sandbox's objects says:
 * enough to show. */
int commits_judge(struct commits *commits, struct branch *branch, struct error *err);

/* Packs a branch, has the pack checked, and judges what is in it, as the git says that sees nothing but the
 * pack and the owner's objects.  Nothing is written to the owner's repository. */
int commits_pack(struct commits *commits, struct branch *branch, struct parcel *out, struct error *err);

/* -1 if something is in the way of what it would be called. */
int commits_refuse_name(const struct branch_name *name, struct error *err);

/* Brings a branch that was packed home under one of its names, or says why not; the owner's repository is then
 * as it was, but for a pack that no reference leads to.  Can be done again at any time. */
int commits_land(struct commits *commits, struct branch *branch, const struct parcel *parcel,
                 struct branch_name *name, struct error *err);

/* A file with the commits of one branch, oldest first, each as a mail that git-am(1) takes: a line
 * "HASH SIZE QUOTED", then so many bytes.  QUOTED is how many lines of its message were marked with "> ",
 * because a program that applies patches would have taken them for one.  Merges are left out. */
int commits_mail(struct commits *commits, const struct branch *branch, struct error *err);
