#pragma once

#include "base/array.h"
#include "spec/limit.h"
#include "spec/network.h"
#include "spec/services.h"

#include <stdbool.h>
#include <stdint.h>

struct error;
struct text;

enum tree_mode {
    TREE_RO,  /* seen, not writable: a lower-only overlay */
    TREE_COW, /* writable inside, the host's files stay as they are */
    TREE_RW,  /* the host's own, writable: only a workspace, and no volume */
};

/* How the work tree is seen, the most permissive first: a later one is narrower (COMBINE_STRICTER). */
enum workspace_mode {
    WORKSPACE_RW,   /* the host's own tree, writable */
    WORKSPACE_LIVE, /* copy on write, and ordinary changes go to the host's tree while it runs */
    WORKSPACE_COW,  /* copy on write: what the owner changes meanwhile may be seen */
    WORKSPACE_COPY, /* the same on a private copy, taken before the start */
    WORKSPACE_RO,   /* not writable */
};

/* One -v SRC:DST[:ro|cow]. */
struct volume {
    char *source, *target; /* both absolute once the spec was checked */
    enum tree_mode mode;
};

struct volumes {
    struct volume *items;
    size_t len, cap;
};

enum enforce { ENFORCE_BEST, ENFORCE_HARD };
enum profile { PROFILE_DEFAULT, PROFILE_STRICT };
enum terminal { TERMINAL_AUTO, TERMINAL_YES, TERMINAL_NO };

/* What one sandbox is: the owner's wishes after every layer of policy had its say.  Immutable
 * once spec_read() gave it out.  Which flag, key and bounds belong to each member is said once,
 * in fields.c. */
struct spec {
    struct strings command; /* empty: the user's shell */
    char *image;            /* "host" or a directory */
    char *directory;        /* -C: where to look for the workspace; "." unless said */
    char *cwd;              /* -w: NULL: the directory the user is in */
    char *user;             /* -u: NULL: the invoking user; else "root" or a number or number:number */
    char *hostname;
    enum profile profile;   /* which seccomp profile */
    enum terminal terminal; /* -t */
    enum workspace_mode workspace;
    uint64_t timeout_ms; /* 0: none */
    struct limit limits[LIMIT_COUNT];
    enum enforce enforce; /* hard: as if every limit said so */
    struct strings env;   /* KEY=VALUE, later ones win; KEY alone was replaced by the host's value */
    struct strings read;  /* host paths visible read-only (~ expanded) */
    struct strings write; /* host paths visible copy on write */
    struct strings hide;  /* patterns that are absent in workspace and granted trees */
    struct volumes volumes;
    struct services services; /* in the order they are started in; each has a name, no two the same */
    enum network_mode network;
    struct rule_list rules;
    struct strings host_services; /* ports: services of the host that are at loopback inside */
    struct strings registries;    /* ecosystems, whose hosts are allowed: gateway/registries.h */
    enum registry_source registries_from;
    char *record;               /* a new file for all exchanges; NULL: none */
    bool record_secrets;        /* as they are */
    char *replay;               /* a file of exchanges that stands for the network; NULL: none */
    char *upstream_proxy;       /* "none", "environment", or a URL: gateway/proxy.h */
    bool packages;              /* package files are kept, and shared by sandboxes */
    struct limit packages_size; /* never hard: nothing is refused for it */
    struct {
        struct limit bytes, requests, connections; /* always as if they were hard */
    } budget;                                      /* of all that leaves and comes */
    bool tools;  /* tool roots of the home directory (~/.nvm ...) are visible */
    bool caches; /* package caches are visible, copy on write */
    bool root;   /* may be root inside (a policy ceiling; true unless a layer says no) */
    bool remove; /* --rm */
    struct {
        struct limit keep, space, live_bytes, live_files; /* never hard: nothing is refused for them */
    } checkpoints;
    struct strings images; /* a ceiling on `image`, used only inside a layer; no part of the JSON */
};

#define SPEC_NONE ((struct spec){ 0 })
#define autospec __attribute__((cleanup(spec_free)))

void spec_free(struct spec *spec);

/* Canonical JSON: keys sorted, no white space, every member present. */
void spec_json(const struct spec *spec, struct text *out);

/* Lower-case hexadecimal SHA-256 of the canonical JSON. */
void spec_hash(const struct spec *spec, char out[65]);
