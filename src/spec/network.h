#pragma once

/* What a policy says about the network: values only.  What they mean is in gateway/rules.h. */

#include "base/array.h"

#include <stdbool.h>
#include <stdint.h>

/* The narrowest first: what nobody has set is no network. */
enum network_mode {
    NETWORK_NONE,
    NETWORK_RULES, /* what a rule allows, and no rule denies */
    NETWORK_AUDIT, /* as open, and what no rule allows is told */
    NETWORK_OPEN,  /* every public address, but what a rule denies */
};

/* Whether it reaches what no rule names. */
static inline bool network_is_public(enum network_mode mode)
{
    return mode >= NETWORK_AUDIT;
}

/* Whose configuration of the tools says which hosts their registries are. */
enum registry_source {
    REGISTRIES_OF_USER,   /* the user's, then the system's */
    REGISTRIES_OF_SYSTEM, /* only what root has written */
};

/* The ecosystems whose registries are known. */
enum registry { REGISTRY_APT, REGISTRY_CARGO, REGISTRY_GO, REGISTRY_NPM, REGISTRY_PIP, REGISTRY_COUNT };

extern const char *const registry_names[REGISTRY_COUNT];

enum rule_action {
    RULE_ALLOW,
    RULE_DENY,
    RULE_MOCK,  /* answered by ourselves: nothing leaves */
    RULE_COUNT, /* what others allow counts for its rate and bytes; it allows nothing itself */
};

struct mock;

/* So many requests in so many seconds; 0 requests: no bound. */
struct rate {
    uint32_t requests, seconds;
};

/* What passes, counted; or a bound on it, and then 0 is none. */
struct amounts {
    uint64_t bytes, requests, connections;
};

struct rule {
    char *host;    /* a pattern of base/hostname.h */
    uint16_t port; /* 0: 80 and 443 */
    enum rule_action action;
    char *address; /* pinned: no other is dialled for this host, and this one may be private; or NULL */
    struct strings methods, paths; /* empty: all of them */
    char *ca; /* by whom its server is believed, and by nobody else: certificates (spec/bundle.h); or NULL */
    struct mock *mock; /* RULE_MOCK: the answer; else NULL */
    struct rate rate;
    uint64_t bytes;         /* both ways, of all that it allows; 0: no bound */
    char *place;            /* who said it: "/etc/cove/policy.yaml:3", "--allow"; NULL: not known */
    bool inside;            /* a name that may lead into a private network: a registry's, never a file's */
    enum registry registry; /* if there is an `index`: of which files may come from this host */
    char
        *index; /* URL at which that registry says what the files' hashes are; NULL: nothing is known of them */
};

struct rule_list {
    struct rule *items;
    size_t len, cap;
};

#define RULE_LIST_NONE ((struct rule_list){ 0 })

void rule_free(struct rule *rule);
void rule_list_free(struct rule_list *list);

/* A copy of its own. */
struct rule rule_copy(const struct rule *rule);

static inline bool rule_has_port(const struct rule *rule, uint16_t port)
{
    return rule->port ? rule->port == port : port == 80 || port == 443;
}
