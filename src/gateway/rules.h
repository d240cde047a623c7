#pragma once

/* What may leave, as pure decisions: nothing here resolves, connects or reads.
 *
 * A question is judged twice.  rules_verdict() before anything is done: no name that it refuses may be asked
 * for outside.  rules_upstream() on every address that the name resolved to, before it is dialled: only an
 * address that passed may be, so a name cannot be made to lead somewhere else.
 *
 * The order of rules means nothing.  A rule that denies wins over any that mocks, that over any that allows. */

#include "base/hostname.h"
#include "gateway/proxy.h"
#include "spec/network.h"

struct addresses {
    struct address *items;
    size_t len, cap;
};

struct rules {
    enum network_mode mode;
    struct rule_list list;    /* owned; also those of registries */
    struct tape *tape;        /* that stands for the network: nothing leaves; NULL: none.  Not owned */
    struct amounts budget;    /* of all that leaves and comes */
    uint64_t packages;        /* bytes of package files that are kept for all sandboxes; 0: none are */
    struct proxy proxy;       /* owned: by which names are reached */
    struct rule_list hints;   /* owned: hosts of registries, which are its places; they allow nothing */
    struct strings variables; /* by which tools inside are told of registries; no matter of the gateway's */
    struct addresses own;     /* of this machine and of other sandboxes: as closed as loopback */
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
    REASON_RULE,       /* a rule allows it */
    REASON_OPEN,       /* the network is open */
    REASON_AUDIT,      /* no rule allows it, and that is to be known: an audit */
    REASON_MOCK,       /* a rule answers it: nothing leaves */
    REASON_REPLAY,     /* a record does */
    REASON_CACHE,      /* a rule allows it, and the file is one that is kept by its hash */
    REASON_UNRECORDED, /* there is a record in place of a network, and nothing in it answers this */
    REASON_NONE,       /* there is no network */
    REASON_SPELLING,   /* the host is written in no form that we take */
    REASON_LOCAL,      /* a name that means another machine everywhere, with no rule that pins its address */
    REASON_NO_RULE,    /* no rule has this host */
    REASON_PORT,       /* the rules that have this host have other ports */
    REASON_DENIED,     /* a rule denies it */
    REASON_METHOD,     /* the rule that is nearest has this host and port, and other methods */
    REASON_PATH,       /* it has the method, and other paths, or the path can be read in two ways */
    REASON_ADDRESS,    /* it leads to an address that is not public and that no rule grants */
    REASON_RATE,       /* there were more requests in this time than a rule allows */
    REASON_BUDGET,     /* what the sandbox or a rule may use of the network is spent */
    REASON_PROTOCOL,   /* what was said is none of the protocols that we take, or not as it must be */
    REASON_COUNT,
};

const char *reason_name(enum reason reason); /* "rule", "rate" */

/* The rules whose rate and bytes a request counts for: all that allow it. */
enum { RULES_BOUNDS = 8 };

struct bounds {
    const struct rule *items[RULES_BOUNDS];
    size_t len;
};

struct verdict {
    bool allowed;
    enum reason reason;
    enum reason without;     /* of REASON_AUDIT: why it would be refused */
    const struct rule *rule; /* of the rules that were asked: the one that decided; NULL: none did */
    struct hostname host;    /* the host in its one form: what is resolved, dialled, compared and recorded */
    uint16_t port;
    struct address pinned; /* dial this one and resolve nothing; of length 0: resolve */
    const struct rule *ca; /* of the rules that were asked: whose ca vouches for the server; NULL: the host's */
    struct bounds bounds;
    uint32_t retry_s;              /* of REASON_RATE: after how many seconds it may be asked again */
    bool packages;                 /* it is a host of package files, of which we could know the hashes */
    bool inspect;                  /* requests have a say: it is only allowed as long as each of them is */
    char why[HOSTNAME_SIZE + 386]; /* one inert line: "no rule allows example.com at port 443" */
    char command[HOSTNAME_SIZE +
                 66]; /* what would change it: "cove allow example.com"; empty: nothing simple would */
};

/* How a command begins that allows a registry; its name is the rest. */
#define VERDICT_REGISTRY "cove run --registry "

void rules_verdict(const struct rules *rules, const struct question *question, struct verdict *out);

/* Whether `address` may be dialled for what `allowed` allows.  If not, `out` says why. */
bool rules_upstream(const struct rules *rules, const struct verdict *allowed, const struct address *address,
                    struct verdict *out);

/* Makes a refusal of it. */
void verdict_refuse(struct verdict *verdict, enum reason reason, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
