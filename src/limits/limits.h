#pragma once

/* Which limit is kept in which way.  A limit is hard (the kernel, or we on the way of every byte, let
 * nothing pass), sampled (the keeper looks, and ends what is above it) or only asked for; who can have
 * what depends on the host and on who runs us (docs/resources.md). */

#include "limits/place.h"
#include "spec/limit.h"

struct error;
struct spec;
struct text;

enum limit_way {
    WAY_NONE,     /* nothing keeps it */
    WAY_CGROUP2,  /* a group of our own in the one tree ... */
    WAY_MANAGER,  /* ... or one that the service manager makes for us */
    WAY_CGROUP1,  /* groups in the trees of single controllers */
    WAY_RLIMIT,   /* of each process, inherited */
    WAY_RELAY,    /* counted by the keeper on its way */
    WAY_SAMPLED,  /* the keeper looks often enough */
    WAY_PER_USER, /* RLIMIT_NPROC where the command may be many users */
    WAY_AFFINITY, /* fewer processors; a program can take them back */
};

struct limit_choice {
    uint64_t max; /* 0: none */
    enum limit_way way;
};

struct limits {
    struct limit_choice items[LIMIT_COUNT];
    struct cgroup_place place; /* where the groups go; kind CGROUP_NONE: none is needed */
    bool freezable;            /* a group that can be frozen is wanted too, where it can be had */
};

#define LIMITS_NONE ((struct limits){ 0 })

void limits_free(struct limits *limits);

/* What is true of the sandbox and matters for its limits. */
struct limit_means {
    bool many_users; /* the command may become others, each with a count of processes of its own */
    bool blind;      /* the kernel does not list who is inside (CONFIG_PROC_CHILDREN) */
};

/* Takes the best way for each limit that the spec has.  Looks at the host only if some limit needs it, and
 * changes nothing.  Refuses what must be hard and cannot be here, and says how it can. */
int limits_choose(const struct spec *spec, const struct limit_means *means, struct limits *out,
                  struct error *err);

/* The same, with the places where groups can be made given: for tests. */
int limits_choose_at(const struct spec *spec, const struct limit_means *means, struct cgroup_place *place_take,
                     struct limits *out, struct error *err);

bool limits_any(const struct limits *limits, enum limit_way way);

bool limit_way_is_hard(enum limit_way way);
const char *limit_way_name(enum limit_way way);  /* one word, for JSON */
const char *limit_way_words(enum limit_way way); /* "hard, cgroup v2": for people */
const char *limit_name(enum limit_id limit);     /* "memory", as the flag has it */

/* "memory 4G" */
void limit_show(enum limit_id limit, uint64_t max, struct text *out);
