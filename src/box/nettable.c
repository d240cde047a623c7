/* The packet rules of a sandbox, by nftables.
 *
 * Two chains see whatever is sent.  The first turns connections to the gateway's port; it comes before the
 * second, which lets answers and loopback through and refuses the rest.  So what was turned is for loopback by
 * then.  The second chain's policy is to drop: nothing depends on its last rule. */

#include "box/nettable.h"

#include "base/address.h"
#include "base/array.h"
#include "base/error.h"
#include "base/own.h"
#include "box/network.h"
#include "sys/netlink.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_conntrack_tuple_common.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define TABLE "cove"
#define TURN "turn"
#define JUDGE "judge"

enum { TURN_PRIORITY = -100, JUDGE_PRIORITY = 0 };

/* Where things stand in a packet. */
enum { AT_PORT = 2, AT_ADDRESS4 = 16, AT_ADDRESS6 = 24 };

static void begin(struct netlink *all, int message, int flags)
{
    const struct nfgenmsg header = { .nfgen_family = NFPROTO_INET, .version = NFNETLINK_V0 };

    netlink_begin(all, (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | message), (uint16_t)flags, &header,
                  sizeof header);
}

static void put_bracket(struct netlink *all, int message)
{
    const struct nfgenmsg header = { .version = NFNETLINK_V0, .res_id = htons(NFNL_SUBSYS_NFTABLES) };

    netlink_begin(all, (uint16_t)message, 0, &header, sizeof header);
}

/* --- the parts of a rule --- */

static void begin_part(struct netlink *all, const char *name)
{
    netlink_nest(all, NFTA_LIST_ELEM);
    netlink_put_text(all, NFTA_EXPR_NAME, name);
    netlink_nest(all, NFTA_EXPR_DATA);
}

static void end_part(struct netlink *all)
{
    netlink_end(all);
    netlink_end(all);
}

static void put_value(struct netlink *all, uint16_t type, const void *bytes, size_t size)
{
    netlink_nest(all, type);
    netlink_put(all, NFTA_DATA_VALUE, bytes, size);
    netlink_end(all);
}

static void compare(struct netlink *all, uint32_t how, const void *bytes, size_t size)
{
    begin_part(all, "cmp");
    netlink_put_u32(all, NFTA_CMP_SREG, NFT_REG_1);
    netlink_put_u32(all, NFTA_CMP_OP, how);
    put_value(all, NFTA_CMP_DATA, bytes, size);
    end_part(all);
}

static void is_meta(struct netlink *all, uint32_t key, uint8_t value)
{
    begin_part(all, "meta");
    netlink_put_u32(all, NFTA_META_KEY, key);
    netlink_put_u32(all, NFTA_META_DREG, NFT_REG_1);
    end_part(all);
    compare(all, NFT_CMP_EQ, &value, sizeof value);
}

static void load(struct netlink *all, uint32_t base, uint32_t offset, size_t size)
{
    begin_part(all, "payload");
    netlink_put_u32(all, NFTA_PAYLOAD_DREG, NFT_REG_1);
    netlink_put_u32(all, NFTA_PAYLOAD_BASE, base);
    netlink_put_u32(all, NFTA_PAYLOAD_OFFSET, offset);
    netlink_put_u32(all, NFTA_PAYLOAD_LEN, (uint32_t)size);
    end_part(all);
}

static void is_answer(struct netlink *all)
{
    const uint8_t reply = IP_CT_DIR_REPLY;

    begin_part(all, "ct");
    netlink_put_u32(all, NFTA_CT_DREG, NFT_REG_1);
    netlink_put_u32(all, NFTA_CT_KEY, NFT_CT_DIRECTION);
    end_part(all);
    compare(all, NFT_CMP_EQ, &reply, sizeof reply);
}

static void is_port(struct netlink *all, uint16_t port)
{
    uint16_t ordered = htons(port);

    load(all, NFT_PAYLOAD_TRANSPORT_HEADER, AT_PORT, sizeof ordered);
    compare(all, NFT_CMP_EQ, &ordered, sizeof ordered);
}

/* To addresses from `first` to `last`, of which only so many bytes count. */
static void is_to(struct netlink *all, int family, const void *first, const void *last, size_t size)
{
    bool four = family == AF_INET;

    is_meta(all, NFT_META_NFPROTO, four ? NFPROTO_IPV4 : NFPROTO_IPV6);
    load(all, NFT_PAYLOAD_NETWORK_HEADER, four ? AT_ADDRESS4 : AT_ADDRESS6, size);
    if (memcmp(first, last, size) == 0) {
        compare(all, NFT_CMP_EQ, first, size);
        return;
    }
    compare(all, NFT_CMP_GTE, first, size);
    compare(all, NFT_CMP_LTE, last, size);
}

static void accept_it(struct netlink *all)
{
    begin_part(all, "immediate");
    netlink_put_u32(all, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
    netlink_nest(all, NFTA_IMMEDIATE_DATA);
    netlink_nest(all, NFTA_DATA_VERDICT);
    netlink_put_u32(all, NFTA_VERDICT_CODE, NF_ACCEPT);
    netlink_end(all);
    netlink_end(all);
    end_part(all);
}

static void turn_it(struct netlink *all)
{
    uint16_t port = htons(NETWORK_PORT);

    begin_part(all, "immediate");
    netlink_put_u32(all, NFTA_IMMEDIATE_DREG, NFT_REG_1);
    put_value(all, NFTA_IMMEDIATE_DATA, &port, sizeof port);
    end_part(all);
    begin_part(all, "redir");
    netlink_put_u32(all, NFTA_REDIR_REG_PROTO_MIN, NFT_REG_1);
    end_part(all);
}

static void refuse_it(struct netlink *all, uint32_t how, uint8_t code)
{
    begin_part(all, "reject");
    netlink_put_u32(all, NFTA_REJECT_TYPE, how);
    netlink_put(all, NFTA_REJECT_ICMP_CODE, &code, sizeof code);
    end_part(all);
}

/* --- rules --- */

enum to { TO_ANY, TO_LOOPBACK, TO_OWN, TO_POOL };
enum act { ACT_ACCEPT, ACT_TURN, ACT_RESET, ACT_REFUSE };

/* Each holds if everything that is said in it does.  With `to`, it is one for each family. */
static const struct rule {
    const char *chain;
    uint8_t protocol; /* 0: any */
    uint16_t port;    /* 0: any */
    enum to to;
    bool answer;
    enum act act;
} rules[] = {
    /* clang-format off */
    { TURN, IPPROTO_UDP, 53, TO_ANY, false, ACT_TURN },
    { TURN, IPPROTO_TCP, 53, TO_ANY, false, ACT_TURN },
    { TURN, 0, 0, TO_LOOPBACK, false, ACT_ACCEPT },
    { TURN, 0, 0, TO_OWN, false, ACT_ACCEPT },
    { TURN, IPPROTO_TCP, 0, TO_POOL, false, ACT_TURN },
    { TURN, IPPROTO_TCP, 80, TO_ANY, false, ACT_TURN },
    { TURN, IPPROTO_TCP, 443, TO_ANY, false, ACT_TURN },

    { JUDGE, 0, 0, TO_ANY, true, ACT_ACCEPT },
    { JUDGE, 0, 0, TO_LOOPBACK, false, ACT_ACCEPT },
    { JUDGE, 0, 0, TO_OWN, false, ACT_ACCEPT },
    { JUDGE, IPPROTO_TCP, 0, TO_ANY, false, ACT_RESET },
    { JUDGE, 0, 0, TO_ANY, false, ACT_REFUSE },
    /* clang-format on */
};

static void is_to_four(struct netlink *all, enum to to)
{
    const uint32_t loopback = htonl(INADDR_LOOPBACK), own = inet_addr(NETWORK_OWN4);
    const uint32_t first = inet_addr(NETWORK_POOL4), last = inet_addr(NETWORK_POOL4_REFUSED);

    if (to == TO_LOOPBACK)
        is_to(all, AF_INET, &loopback, &loopback, 1);
    else if (to == TO_OWN)
        is_to(all, AF_INET, &own, &own, sizeof own);
    else
        is_to(all, AF_INET, &first, &last, 2);
}

static void is_to_six(struct netlink *all, enum to to)
{
    struct in6_addr first = IN6ADDR_LOOPBACK_INIT, last = first;

    if (to == TO_OWN) {
        (void)inet_pton(AF_INET6, NETWORK_OWN6, &first);
        last = first;
    } else if (to == TO_POOL) {
        (void)inet_pton(AF_INET6, NETWORK_POOL6, &first);
        (void)inet_pton(AF_INET6, NETWORK_POOL6_REFUSED, &last);
    }
    is_to(all, AF_INET6, &first, &last, to == TO_POOL ? sizeof first / 2 : sizeof first);
}

static void put_rule(struct netlink *all, const struct rule *rule, int family, int flags)
{
    begin(all, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND | flags);
    netlink_put_text(all, NFTA_RULE_TABLE, TABLE);
    netlink_put_text(all, NFTA_RULE_CHAIN, rule->chain);
    netlink_nest(all, NFTA_RULE_EXPRESSIONS);
    if (rule->answer)
        is_answer(all);
    if (rule->to != TO_ANY && family == AF_INET)
        is_to_four(all, rule->to);
    else if (rule->to != TO_ANY)
        is_to_six(all, rule->to);
    if (rule->protocol)
        is_meta(all, NFT_META_L4PROTO, rule->protocol);
    if (rule->port)
        is_port(all, rule->port);
    if (rule->act == ACT_ACCEPT)
        accept_it(all);
    else if (rule->act == ACT_TURN)
        turn_it(all);
    else if (rule->act == ACT_RESET)
        refuse_it(all, NFT_REJECT_TCP_RST, 0);
    else
        refuse_it(all, NFT_REJECT_ICMPX_UNREACH, NFT_REJECT_ICMPX_ADMIN_PROHIBITED);
    netlink_end(all);
}

/* The last one, which is for every family, answers for all. */
static int put_rules(struct netlink *all)
{
    int count = 0;

    for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
        put_rule(all, &rules[i], AF_INET, i + 1 == ARRAY_LEN(rules) ? NLM_F_ACK : 0);
        count++;
        if (rules[i].to == TO_ANY)
            continue;
        put_rule(all, &rules[i], AF_INET6, 0);
        count++;
    }
    return count;
}

static void put_chain(struct netlink *all, const char *name, const char *type, int priority, uint32_t policy)
{
    begin(all, NFT_MSG_NEWCHAIN, NLM_F_CREATE);
    netlink_put_text(all, NFTA_CHAIN_TABLE, TABLE);
    netlink_put_text(all, NFTA_CHAIN_NAME, name);
    netlink_put_text(all, NFTA_CHAIN_TYPE, type);
    netlink_put_u32(all, NFTA_CHAIN_POLICY, policy);
    netlink_nest(all, NFTA_CHAIN_HOOK);
    netlink_put_u32(all, NFTA_HOOK_HOOKNUM, NF_INET_LOCAL_OUT);
    netlink_put_u32(all, NFTA_HOOK_PRIORITY, (uint32_t)priority);
    netlink_end(all);
}

static int count_rules(int fd)
{
    struct netlink question = { 0 };

    begin(&question, NFT_MSG_GETRULE, NLM_F_DUMP);
    netlink_put_text(&question, NFTA_RULE_TABLE, TABLE);
    return netlink_count(fd, &question, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWRULE);
}

static int read_back(int fd, int wanted, struct error *err)
{
    int found = count_rules(fd);

    if (found < 0)
        return error_sys(err, "read back the packet rules");
    return found == wanted ? 0
                           : error_set(err, ERROR_REFUSED, "read back: %d packet rules of %d", found, wanted);
}

int nettable_load(struct error *err)
{
    autoclose int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
    struct netlink all = { 0 };

    if (fd < 0)
        return error_sys(err, "speak to nftables");
    put_bracket(&all, NFNL_MSG_BATCH_BEGIN);
    begin(&all, NFT_MSG_NEWTABLE, NLM_F_CREATE);
    netlink_put_text(&all, NFTA_TABLE_NAME, TABLE);
    put_chain(&all, TURN, "nat", TURN_PRIORITY, NF_ACCEPT);
    put_chain(&all, JUDGE, "filter", JUDGE_PRIORITY, NF_DROP);

    int count = put_rules(&all);

    put_bracket(&all, NFNL_MSG_BATCH_END);
    if (netlink_exchange(fd, &all) < 0)
        return error_sys(err, "load the packet rules (nftables)");
    return read_back(fd, count, err) < 0 ? -1 : steal_fd(&fd);
}

/* --- what rules of the owner's add --- */

/* A service of the host comes before all others, since loopback is let through otherwise. */
static int put_grant(struct netlink *all, const char *granted, struct error *err)
{
    size_t len = strcspn(granted, " ");
    struct address address = ADDRESS_NONE;

    if (strcmp(granted, "*") != 0 && address_read(granted, len, &address) != ADDRESS_PLAIN)
        return error_set(err, ERROR_INVALID, "%s is no address", granted);
    bool service = address.len && address_class(&address) == ADDRESS_LOOPBACK;

    begin(all, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_ACK | (service ? 0 : NLM_F_APPEND));
    netlink_put_text(all, NFTA_RULE_TABLE, TABLE);
    netlink_put_text(all, NFTA_RULE_CHAIN, TURN);
    netlink_nest(all, NFTA_RULE_EXPRESSIONS);
    if (address.len)
        is_to(all, address.len == 4 ? AF_INET : AF_INET6, address.bytes, address.bytes, address.len);
    is_meta(all, NFT_META_L4PROTO, IPPROTO_TCP);
    if (address.len)
        is_port(all, (uint16_t)strtoul(granted + len, NULL, 10));
    turn_it(all);
    netlink_end(all);
    return 0;
}

/* One at a time: there may be more than fit into one message. */
int nettable_grant(int fd, const struct strings *granted, struct error *err)
{
    int before = count_rules(fd);

    for (size_t i = 0; i < granted->len; i++) {
        struct netlink all = { 0 };

        put_bracket(&all, NFNL_MSG_BATCH_BEGIN);
        if (put_grant(&all, granted->items[i], err) < 0)
            return -1;
        put_bracket(&all, NFNL_MSG_BATCH_END);
        if (netlink_exchange(fd, &all) < 0)
            return error_sys(err, "load a packet rule for %s", granted->items[i]);
    }
    return read_back(fd, before + (int)granted->len, err);
}
