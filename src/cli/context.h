#pragma once

#include "box/host.h"
#include "box/tree.h"
#include "box/workspace.h"
#include "cli/options.h"
#include "gateway/registries.h"

/* What every command about a sandbox-to-be starts from: who we are, what was asked for, what the
 * layers of policy left of it, and where the work tree is. */
struct reel;
struct rules;

struct context {
    struct options options;
    struct host host;
    struct spec spec;
    struct spec_origins origins;
    struct workspace workspace;
    struct trees trees; /* the workspace's */

    /* Asked first where the workspace is: 0: it has said so, and no repository is read; 1: it does not know.
     * NULL: nobody is. */
    int (*recall)(void *owner, const struct host *host, struct workspace *workspace, struct trees *trees,
                  struct error *err);
    void *owner;
};

#define CONTEXT_NONE ((struct context){ 0 })

void context_free(struct context *context);

/* Reads host, policy and workspace after the options were parsed.  Policy is fixed by
 * administrator and owner before a byte of the repository is read; what the repository says can
 * only narrow it. */
int context_read(struct context *context, struct error *err);

/* Whether the certificates of rules are such. */
int context_check_bundles(const struct rule_list *rules, struct error *err);

/* The files of --record and --replay, of a sandbox with these trees (keeper/reel.h).  Lines that are no
 * exchange are said as a warning. */
int context_reel(const struct context *context, const struct trees *trees, bool again, struct reel *out,
                 struct error *err);

/* Where it is said which hosts registries are.  Borrows from `context`. */
struct registry_places context_registries(const struct context *context);

/* What the network rules come to, those of registries and the files of mocks included.  What could not be used
 * of registries is said as a warning.  On failure `out` is empty. */
int context_rules(const struct context *context, struct rules *out, struct error *err);
