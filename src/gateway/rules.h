#pragma once

/* What may leave, as pure decisions: nothing here resolves, connects or reads.
 *
 * A question is judged twice.  rules_verdict() before anything is done: no name that it refuses may be asked
 * for outside.  rules_upstream() on every address that the name resolved to, before it is dialled: only an
 * address that passed may be, so a name cannot be made to lead somewhere else.
 *
 * The order of rules means nothing.  A rule that denies wins over any that allows. */

#include "base/hostname.h"
#include "spec/network.h"

struct addresses {
    struct address *items;
    size_t len, cap;
};

struct rules {
    enum network_mode mode;
    struct rule_list list; /* owned; also those of registries */
    struct addresses own;  /* of this machine and of other sandboxes: as closed as loopback */
};

#define RULES_NONE ((struct rules){ 0 })

/* Rules with no `list` and no `own` allow nothing.  Copies. */
void rules_init(struct rules *rules, enum network_mode mode, const struct rule_list *list);
void rules_add(struct rules *rules, const struct rule_list *more);
void rules_add_own(struct rules *rules, const struct address *address);
void rules_free(struct rules *rules);
#define autorules __attribute__((cleanup(rules_free)))

/* What a client asks for. */
struct question {
    const char *host; /* bytes of any kind; no zero is needed behind them */
    size_t host_len;
    uint16_t port;
    const char *method; /* NULL: not seen, as when a connection begins or TLS is passed through */
    const char *path;   /* as it stands in the request, with its query; NULL: not seen */
    bool overridden;    /* other parts of it name another method or path, which some servers take instead */
};

enum reason {
    REASON_RULE,     /* a rule allows it */
    REASON_OPEN,     /* the network is open */
    REASON_NONE,     /* there is no network */
    REASON_SPELLING, /* the host is written in no form that we take */
    REASON_LOCAL,    /* a name that means another machine everywhere, with no rule that pins its address */
    REASON_NO_RULE,  /* no rule has this host */
    REASON_PORT,     /* the rules that have this host have other ports */
    REASON_DENIED,   /* a rule denies it */
    REASON_METHOD,   /* the rules that have this host and port have other methods */
    REASON_PATH,     /* or other paths, or the path can be read in two ways */
    REASON_ADDRESS,  /* it leads to an address that is not public and that no rule grants */
};

struct verdict {
    bool allowed;
    enum reason reason;
    const struct rule *rule; /* of the rules that were asked: the one that decided; NULL: none did */
    struct hostname host;    /* the host in its one form: what is resolved, dialled, compared and recorded */
    uint16_t port;
    struct address pinned; /* dial this one and resolve nothing; of length 0: resolve */
    bool inspect;          /* methods or paths have a say: it is only allowed as long as each request is */
    char why[HOSTNAME_SIZE + 386]; /* one inert line: "no rule allows example.com at port 443" */
    char command[HOSTNAME_SIZE +
                 66]; /* what would change it: "cove allow example.com"; empty: nothing simple would */
};

void rules_verdict(const struct rules *rules, const struct question *question, struct verdict *out);

/* Whether `address` may be dialled for what `allowed` allows.  If not, `out` says why. */
bool rules_upstream(const struct rules *rules, const struct verdict *allowed, const struct address *address,
                    struct verdict *out);
