#include "gateway/rules.h"

#include "base/own.h"
#include "base/text.h"
#include "spec/mock.h"
#include "spec/spec.h"
#include "tests/support/unit.h"

#include <stdio.h>

/* Rules for tests are written "allow HOST[ PORT][ =ADDRESS]", a comma between two. */
static void parse_rule(const char *text, struct rule *rule)
{
    char action[8] = "", host[HOSTNAME_SIZE + 2] = "", a[64] = "", b[64] = "";

    sscanf(text, " %7[a-z] %254[^ ,] %63[^ ,] %63[^ ,]", action, host, a, b);
    *rule = (struct rule){ .host = text_copy(host),
                           .action = strcmp(action, "deny") == 0 ? RULE_DENY : RULE_ALLOW };
    rule->place = text_copy(text);
    *strchrnul(rule->place, ',') = '\0';
    for (const char *const *at = (const char *const[]){ a, b, NULL }; *at; at++) {
        if ((*at)[0] == '=')
            rule->address = text_copy(*at + 1);
        else if ((*at)[0])
            rule->port = (uint16_t)atoi(*at);
    }
}

static void parse_rules(const char *text, enum network_mode mode, struct rules *out)
{
    struct rule_list list = RULE_LIST_NONE;

    for (const char *at = text; *at; at = strchrnul(at, ','), at += *at == ',')
        parse_rule(at, array_add(&list));
    rules_init(out, mode, &list);
    rule_list_free(&list);
}

static struct verdict ask(const struct rules *rules, const char *host, size_t len, uint16_t port)
{
    const struct question question = { .host = host, .host_len = len, .port = port };
    struct verdict verdict;

    rules_verdict(rules, &question, &verdict);
    return verdict;
}

enum expected { ALLOW, DENY, REJECT };

static const struct truth {
    const char *rules, *host;
    uint16_t port;
    enum expected expected;
} truth[] = {
#include "truth.def"
};

static void names_are_judged_as_the_table_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(truth); i++) {
        const struct truth *row = &truth[i];
        struct rules rules;
        struct verdict verdict;

        parse_rules(row->rules, NETWORK_RULES, &rules);
        verdict = ask(&rules, row->host, strlen(row->host), row->port);
        if (verdict.allowed != (row->expected == ALLOW) ||
            (verdict.reason == REASON_SPELLING) != (row->expected == REJECT))
            fail_msg("[%s] %s port %u: %s", row->rules, row->host, row->port, verdict.why);
        assert_true(*verdict.why);
        assert_true((verdict.reason == REASON_SPELLING) == (verdict.host.text[0] == '\0'));
        rules_free(&rules);
    }
}

static void a_zero_byte_hides_nothing(void **state)
{
    static const char a[] = "example.com\0.evil", b[] = "evil\0.example.com";
    struct rules rules;

    (void)state;
    parse_rules("allow example.com,allow *.example.com", NETWORK_RULES, &rules);
    assert_int_equal(ask(&rules, a, sizeof a - 1, 443).reason, REASON_SPELLING);
    assert_int_equal(ask(&rules, b, sizeof b - 1, 443).reason, REASON_SPELLING);
    rules_free(&rules);
}

/* NET-07: whatever the spelling, and although everything is open. */
static void closed_addresses_stay_closed_in_an_open_network(void **state)
{
    static const char *const closed[] = {
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "127.0.0.1.",
        "localhost",
        "localhost.",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "[fe80::1%lo]",
        "0.0.0.0",
        "0",
        "[::]",
        "169.254.169.254",
        "0xa9fea9fe",
        "[::ffff:a9fe:a9fe]",
        "[fd00:ec2::254]",
        "100.100.100.200",
        "metadata.google.internal",
        "192.0.0.192",
        "10.0.0.1",
        "192.168.1.1",
        "172.16.0.1",
        "100.64.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "[fc00::1]",
        "[ff02::1]",
        "db",
        "printer.local",
    };
    struct rules rules;

    (void)state;
    parse_rules("allow *", NETWORK_OPEN, &rules);
    for (size_t i = 0; i < ARRAY_LEN(closed); i++) {
        struct verdict verdict = ask(&rules, closed[i], strlen(closed[i]), 80);

        if (verdict.allowed)
            fail_msg("%s is allowed: %s", closed[i], verdict.why);
    }
    assert_true(ask(&rules, "8.8.8.8", 7, 53).allowed);
    assert_true(ask(&rules, "example.com", 11, 22).allowed);
    rules_free(&rules);
}

static bool upstream(const struct rules *rules, const char *host, uint16_t port, const char *written,
                     struct verdict *out)
{
    struct verdict verdict = ask(rules, host, strlen(host), port);
    struct address address;

    assert_true(verdict.allowed);
    (void)address_read(written, strlen(written), &address);
    return rules_upstream(rules, &verdict, &address, out);
}

/* Whoever reads a refusal may ask the owner to type what it proposes. */
static void nobody_is_told_to_open_this_machine_or_its_credentials(void **state)
{
    static const struct {
        const char *host, *command;
    } cases[] = {
        { "169.254.169.254", "" },
        { "[fd00:ec2::254]", "" },
        { "100.100.100.200", "" },
        { "127.0.0.1", "" },
        { "[::1]", "" },
        { "[fe80::1]", "" },
        { "0.0.0.0", "" },
        { "224.0.0.1", "" },
        { "8.8.8.8", "cove allow 8.8.8.8:80" },
        { "10.0.0.1", "cove allow 10.0.0.1:80" },
        { "example.com", "cove allow example.com" },
    };
    struct rules rules;
    struct verdict refused;

    (void)state;
    parse_rules("allow mirror.corp.test", NETWORK_RULES, &rules);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_string_equal(ask(&rules, cases[i].host, strlen(cases[i].host), 80).command, cases[i].command);
    assert_false(upstream(&rules, "mirror.corp.test", 443, "169.254.169.254", &refused));
    assert_string_equal(refused.command, "");
    assert_false(upstream(&rules, "mirror.corp.test", 443, "203.0.113.80", &refused));
    assert_string_equal(refused.command, "cove allow mirror.corp.test --address 203.0.113.80");
    rules_free(&rules);
}

/* Who is refused a registry's host needs the registry, not that one host. */
static void a_host_of_a_registry_is_proposed_as_one(void **state)
{
    struct rules rules;

    (void)state;
    parse_rules("allow example.com", NETWORK_RULES, &rules);
    *array_add(&rules.hints) =
        (struct rule){ .host = text_copy("index.test"), .port = 443, .place = text_copy("pip") };
    assert_string_equal(ask(&rules, "index.test", 10, 443).command, "cove run --registry pip");
    assert_false(ask(&rules, "index.test", 10, 443).allowed);
    assert_string_equal(ask(&rules, "index.test", 10, 80).command, "cove allow index.test");
    assert_string_equal(ask(&rules, "other.test", 10, 443).command, "cove allow other.test");
    assert_string_equal(ask(&rules, "example.com", 11, 8443).command, "cove allow example.com:8443");
    rules_free(&rules);
}

/* DNS-07: where an allowed name leads to counts as well. */
static void a_name_leads_to_public_addresses_only(void **state)
{
    static const char *const closed[] = {
        "127.0.0.1",
        "::1",
        "169.254.169.254",
        "10.0.0.5",
        "100.64.0.1",
        "fd00::1",
        "fe80::1",
        "0.0.0.0",
        "::",
        "::ffff:127.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "224.0.0.1",
        "255.255.255.255",
        "192.0.2.1",
        "203.0.113.7",
    };
    struct address own = address_from((const unsigned char[]){ 8, 8, 4, 4 }, 4);
    struct verdict refused;

    (void)state;
    for (int mode = NETWORK_RULES; mode <= NETWORK_OPEN; mode++) {
        struct rules rules;

        parse_rules("allow example.com,allow 10.0.0.5 5432", (enum network_mode)mode, &rules);
        rules_add_own(&rules, &own);
        for (size_t i = 0; i < ARRAY_LEN(closed); i++)
            if (upstream(&rules, "example.com", 443, closed[i], &refused))
                fail_msg("example.com may lead to %s", closed[i]);
        assert_true(upstream(&rules, "example.com", 443, "8.8.8.8", &refused));
        assert_false(upstream(&rules, "example.com", 443, "8.8.4.4", &refused));
        assert_contains(refused.why, "of this machine");
        assert_string_equal(refused.command, "");
        assert_false(upstream(&rules, "example.com", 443, "10.0.0.5", &refused));
        assert_string_equal(refused.command, "cove allow example.com --address 10.0.0.5");
        rules_free(&rules);
    }
}

/* As open as an open network, no more; and it tells what would have been. */
static void an_audit_lets_through_and_tells(void **state)
{
    static const struct {
        const char *host;
        uint16_t port;
        enum reason reason, without;
        const char *why, *command;
    } cases[] = {
        { "a.test", 443, REASON_RULE, 0, "allows a.test", "" },
        { "a.test", 22, REASON_AUDIT, REASON_PORT, "but not at port 22", "cove allow a.test:22" },
        { "b.test", 443, REASON_AUDIT, REASON_NO_RULE, "no rule allows b.test", "cove allow b.test" },
        { "8.8.8.8", 53, REASON_AUDIT, REASON_NO_RULE, "no rule allows 8.8.8.8", "cove allow 8.8.8.8:53" },
        { "bad.test", 443, REASON_DENIED, 0, "denies", "" },
        { "10.0.0.5", 80, REASON_ADDRESS, 0, "closed also where", "cove allow 10.0.0.5:80" },
        { "169.254.169.254", 80, REASON_ADDRESS, 0, "closed also where", "" },
        { "db", 80, REASON_LOCAL, 0, "another machine", "" },
    };
    struct rules rules;

    (void)state;
    parse_rules("allow a.test,deny bad.test", NETWORK_AUDIT, &rules);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct verdict verdict = ask(&rules, cases[i].host, strlen(cases[i].host), cases[i].port);

        assert_int_equal(verdict.reason, cases[i].reason);
        assert_int_equal(verdict.without, cases[i].without);
        assert_int_equal(verdict.allowed, cases[i].reason == REASON_RULE || cases[i].reason == REASON_AUDIT);
        assert_contains(verdict.why, cases[i].why);
        assert_string_equal(verdict.command, cases[i].command);
    }
    rules_free(&rules);
}

/* What a rule grants beside the name, it grants for its own port. */
static void an_audit_leads_where_the_rule_of_the_port_does(void **state)
{
    struct question post = { .host = "db.test", .host_len = 7, .port = 80, .method = "POST", .path = "/" };
    struct rules rules;
    struct verdict verdict, refused;
    struct address inner = address_from((const unsigned char[]){ 10, 0, 0, 5 }, 4);

    (void)state;
    parse_rules("allow db.test 80 =10.0.0.5", NETWORK_AUDIT, &rules);
    strings_add(&rules.list.items[0].methods, "GET");
    rules_verdict(&rules, &post, &verdict);
    assert_int_equal(verdict.without, REASON_METHOD);
    assert_true(verdict.allowed && rules_upstream(&rules, &verdict, &inner, &refused));
    post.overridden = true;
    rules_verdict(&rules, &post, &verdict);
    assert_int_equal(verdict.without, REASON_PROTOCOL);
    post.port = 81;
    rules_verdict(&rules, &post, &verdict);
    assert_true(verdict.allowed);
    assert_false(rules_upstream(&rules, &verdict, &inner, &refused));
    rules_free(&rules);
}

static void a_pinned_address_is_the_only_one(void **state)
{
    struct rules rules;
    struct verdict refused;

    (void)state;
    parse_rules("allow db.corp.test 5432 =10.0.0.5,allow *.corp.test 5432", NETWORK_RULES, &rules);
    assert_true(upstream(&rules, "db.corp.test", 5432, "10.0.0.5", &refused));
    assert_false(upstream(&rules, "db.corp.test", 5432, "10.0.0.6", &refused));
    assert_false(upstream(&rules, "db.corp.test", 5432, "8.8.8.8", &refused));
    assert_false(upstream(&rules, "other.corp.test", 5432, "10.0.0.5", &refused));
    assert_int_equal(ask(&rules, "db.corp.test", 12, 5432).pinned.len, 4);
    assert_int_equal(ask(&rules, "other.corp.test", 15, 5432).pinned.len, 0);
    rules_free(&rules);
}

static void a_registry_may_lie_in_a_private_network(void **state)
{
    struct address own = address_from((const unsigned char[]){ 10, 0, 0, 77 }, 4);
    struct rules rules;
    struct verdict refused;

    (void)state;
    parse_rules("allow mirror.corp.test", NETWORK_RULES, &rules);
    rules.list.items[0].inside = true;
    rules_add_own(&rules, &own);
    assert_false(upstream(&rules, "mirror.corp.test", 443, "10.0.0.77", &refused));
    assert_true(upstream(&rules, "mirror.corp.test", 443, "10.0.0.5", &refused));
    assert_true(upstream(&rules, "mirror.corp.test", 443, "fd12::1", &refused));
    assert_true(upstream(&rules, "mirror.corp.test", 443, "198.51.100.7", &refused));
    assert_false(upstream(&rules, "mirror.corp.test", 443, "0.0.0.0", &refused));
    assert_false(upstream(&rules, "mirror.corp.test", 443, "fe80::1", &refused));
    assert_false(upstream(&rules, "mirror.corp.test", 443, "64:ff9b::a00:5", &refused));
    assert_true(upstream(&rules, "mirror.corp.test", 443, "8.8.8.8", &refused));
    assert_false(upstream(&rules, "mirror.corp.test", 443, "127.0.0.1", &refused));
    assert_false(upstream(&rules, "mirror.corp.test", 443, "169.254.169.254", &refused));
    rules_free(&rules);
}

static void what_would_change_it_is_a_command(void **state)
{
    static const struct {
        const char *rules, *host;
        uint16_t port;
        enum reason reason;
        const char *command;
    } rows[] = {
        { "", "Example.com.", 443, REASON_NO_RULE, "cove allow example.com" },
        { "", "example.com", 80, REASON_NO_RULE, "cove allow example.com" },
        { "", "example.com", 8443, REASON_NO_RULE, "cove allow example.com:8443" },
        { "allow example.com", "example.com", 22, REASON_PORT, "cove allow example.com:22" },
        { "", "10.0.0.5", 80, REASON_NO_RULE, "cove allow 10.0.0.5:80" },
        { "", "[2001:db8::1]", 443, REASON_NO_RULE, "cove allow '[2001:db8::1]:443'" },
        { "deny example.com", "example.com", 443, REASON_DENIED, "" },
        { "", "localhost", 80, REASON_NO_RULE, "" },
        { "", "exa\x1bmple.com", 80, REASON_SPELLING, "" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct rules rules;
        struct verdict verdict;

        parse_rules(rows[i].rules, NETWORK_RULES, &rules);
        verdict = ask(&rules, rows[i].host, strlen(rows[i].host), rows[i].port);
        if (verdict.reason != rows[i].reason || strcmp(verdict.command, rows[i].command) != 0)
            fail_msg("[%s] %s: %d \"%s\" %s", rows[i].rules, rows[i].host, verdict.reason, verdict.command,
                     verdict.why);
        assert_null(strchr(verdict.why, '\x1b'));
        rules_free(&rules);
    }
}

static void without_a_network_no_rule_helps(void **state)
{
    struct rules rules;

    (void)state;
    parse_rules("allow example.com", NETWORK_NONE, &rules);
    assert_int_equal(ask(&rules, "example.com", 11, 443).reason, REASON_NONE);
    rules_free(&rules);
    assert_int_equal(ask(&RULES_NONE, "example.com", 11, 443).reason, REASON_NONE);
}

/* Methods and paths */

static struct verdict request(const struct rules *rules, const char *method, const char *path)
{
    const struct question question = {
        .host = "api.test", .host_len = 8, .port = 443, .method = method, .path = path
    };
    struct verdict verdict;

    rules_verdict(rules, &question, &verdict);
    return verdict;
}

static void requests_are_judged_when_they_are_seen(void **state)
{
    struct rules rules;

    (void)state;
    parse_rules("allow api.test,deny api.test", NETWORK_RULES, &rules);
    strings_add(&rules.list.items[0].methods, "GET");
    strings_add(&rules.list.items[0].paths, "/v1/**");
    strings_add(&rules.list.items[1].paths, "/v1/secret");

    assert_true(request(&rules, NULL, NULL).allowed);
    assert_true(request(&rules, NULL, NULL).inspect);
    assert_true(request(&rules, "GET", "/v1/a?b").allowed);
    assert_int_equal(request(&rules, "POST", "/v1/a").reason, REASON_METHOD);
    assert_int_equal(request(&rules, "get", "/v1/a").reason, REASON_METHOD);
    assert_int_equal(request(&rules, "GET", "/v2/a").reason, REASON_PATH);
    assert_int_equal(request(&rules, "GET", "/v1/secret").reason, REASON_DENIED);
    assert_int_equal(request(&rules, "GET", "/v1/%73ecret?x").reason, REASON_DENIED);

    /* Read in two ways: denied by what denies, not allowed by what allows. */
    assert_int_equal(request(&rules, "GET", "/v1/x/../secret").reason, REASON_DENIED);
    rules_free(&rules);
    parse_rules("allow api.test", NETWORK_RULES, &rules);
    strings_add(&rules.list.items[0].paths, "/v1/**");
    assert_int_equal(request(&rules, "GET", "/v1/../v2").reason, REASON_PATH);
    assert_false(request(&rules, "GET", "/v2").inspect);
    rules_free(&rules);
    parse_rules("allow api.test", NETWORK_RULES, &rules);
    assert_true(request(&rules, "GET", "/v1/../v2").allowed);
    assert_false(request(&rules, "GET", "/v1/../v2").inspect);
    rules_free(&rules);
}

/* Of several rules that do not allow it the one is named that lacks the least, and what was asked for. */
static void the_nearest_rule_is_named_with_the_request(void **state)
{
    static const struct {
        const char *method, *path, *why;
    } rows[] = {
        { "POST", "/v1/a?token=x", "one allows api.test at port 443, but not POST /v1/a" },
        { "GET", "/upload", "two allows api.test at port 443, but not GET /upload" },
        { "POST", "/v2", "two allows api.test at port 443, but not POST /v2" },
        { "POST", "/v1/../v2",
          "two allows api.test at port 443, but not POST /v1/../v2, a path that can be read in two ways" },
        { "GET", "/v1/\033[2J", "no denies GET /v1/\\x1b[2J of api.test at port 443" },
    };
    char longer[400] = "/v2/";
    struct rules rules;

    (void)state;
    for (size_t order = 0; order < 2; order++) {
        parse_rules("allow api.test,allow api.test,deny api.test", NETWORK_RULES, &rules);
        for (size_t i = 0; i < 3; i++) {
            free(rules.list.items[i].place);
            rules.list.items[i].place = text_copy(i == 2 ? "no" : i == order ? "one" : "two");
        }
        strings_add(&rules.list.items[order].methods, "GET");
        strings_add(&rules.list.items[order].paths, "/v1/**");
        strings_add(&rules.list.items[!order].methods, "POST");
        strings_add(&rules.list.items[!order].paths, "/upload");
        strings_add(&rules.list.items[2].methods, "GET");
        strings_add(&rules.list.items[2].paths, "/v1/%1B*");
        for (size_t i = 0; i < ARRAY_LEN(rows); i++)
            assert_string_equal(request(&rules, rows[i].method, rows[i].path).why, rows[i].why);
        memset(longer + 4, 'x', sizeof longer - 5);
        assert_true(text_ends(request(&rules, "POST", longer).why, "xxx..."));
        assert_true(strlen(request(&rules, "POST", longer).why) < 160);
        rules_free(&rules);
    }
}

/* Forms that some servers take for the same, and parts that some take instead. */
static void what_denies_is_wider_than_what_allows(void **state)
{
    struct question question = {
        .host = "api.test", .host_len = 8, .port = 443, .method = "GET", .path = "/v1/a"
    };
    struct verdict verdict;
    struct rules rules;

    (void)state;
    parse_rules("allow api.test,deny api.test,deny api.test", NETWORK_RULES, &rules);
    strings_add(&rules.list.items[1].methods, "DELETE");
    strings_add(&rules.list.items[2].paths, "/admin");
    strings_add(&rules.list.items[2].paths, "/keys/**");
    assert_true(request(&rules, "GET", "/v1/a").allowed);
    for (const char *const *method = (const char *const[]){ "DELETE", "delete", "Delete", NULL }; *method;
         method++)
        assert_int_equal(request(&rules, *method, "/v1/a").reason, REASON_DENIED);
    for (const char *const *path =
             (const char *const[]){ "/admin", "/admin/", "/Admin?x", "/ADMIN/", "/KEYS/a", "/keys/", NULL };
         *path; path++)
        assert_int_equal(request(&rules, "GET", *path).reason, REASON_DENIED);
    assert_true(request(&rules, "GET", "/administrator").allowed);
    question.overridden = true;
    rules_verdict(&rules, &question, &verdict);
    assert_int_equal(verdict.reason, REASON_DENIED);
    rules_free(&rules);

    parse_rules("allow api.test", NETWORK_RULES, &rules);
    rules_verdict(&rules, &question, &verdict);
    assert_true(verdict.allowed);
    strings_add(&rules.list.items[0].paths, "/v1/*");
    rules_verdict(&rules, &question, &verdict);
    assert_int_equal(verdict.reason, REASON_METHOD);
    assert_int_equal(request(&rules, "GET", "/V1/a").reason, REASON_PATH);
    assert_int_equal(request(&rules, "GET", "/v1/a/").reason, REASON_PATH);
    rules_free(&rules);
}

/* Random rules against a model of one line a rule. */

static unsigned long long random_state;

static unsigned pick(unsigned below)
{
    random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)(random_state >> 33) % below;
}

static const char *const some_hosts[] = { "a.test",     "b.a.test", "c.b.a.test", "a.b.test", "xa.test",
                                          "198.41.0.4", "2a00::1",  "test",       "10.1.1.1" };
static const char *const some_patterns[] = { "*",       "*.test",   "*.a.test", "*.b.a.test",
                                             "a.test",  "b.a.test", "a.b.test", "198.41.0.4",
                                             "2a00::1", "10.1.1.1", "test" };
static const uint16_t some_ports[] = { 0, 80, 443, 22 };

static bool model_has(const struct rule *rule, const char *host, uint16_t port)
{
    bool address = strpbrk(host, ":123456789") != NULL;
    size_t tail = strlen(rule->host) > 1 ? strlen(rule->host) - 1 : 0;
    bool same = strcmp(rule->host, host) == 0, star = rule->host[0] == '*' && !address;
    bool below =
        star && (tail == 0 || (strlen(host) > tail && strcmp(host + strlen(host) - tail, rule->host + 1) == 0));

    return (same || below) && (rule->port == port || (!rule->port && (port == 80 || port == 443)));
}

static bool model(const struct rules *rules, const char *host, uint16_t port)
{
    bool allow = network_is_public(rules->mode) && strcmp(host, "10.1.1.1") != 0 && strcmp(host, "test") != 0;

    for (size_t i = 0; i < rules->list.len; i++)
        if (rules->list.items[i].action == RULE_ALLOW && strcmp(host, "test") != 0)
            allow |= model_has(&rules->list.items[i], host, port);
    for (size_t i = 0; i < rules->list.len; i++)
        if (rules->list.items[i].action == RULE_DENY)
            allow &= !model_has(&rules->list.items[i], host, port);
    return allow && rules->mode != NETWORK_NONE;
}

static void random_rules(struct rules *rules)
{
    *rules = (struct rules){ .mode = (enum network_mode)pick(4) };
    for (unsigned count = pick(6); count; count--)
        *array_add(&rules->list) = (struct rule){
            .host = text_copy(some_patterns[pick(ARRAY_LEN(some_patterns))]),
            .port = some_ports[pick(ARRAY_LEN(some_ports))],
            .action = pick(3) ? RULE_ALLOW : RULE_DENY,
        };
}

static void swap_two(struct rule_list *list)
{
    size_t a = pick((unsigned)list->len), b = pick((unsigned)list->len);
    struct rule held = list->items[a];

    list->items[a] = list->items[b];
    list->items[b] = held;
}

static void random_rules_do_what_a_simple_model_does(void **state)
{
    (void)state;
    random_state = 1;
    for (int round = 0; round < 20000; round++) {
        struct rules rules;
        const char *host = some_hosts[pick(ARRAY_LEN(some_hosts))];
        uint16_t port = some_ports[1 + pick(ARRAY_LEN(some_ports) - 1)];

        random_rules(&rules);

        bool expected = model(&rules, host, port);
        struct verdict verdict = ask(&rules, host, strlen(host), port);

        if (verdict.allowed != expected)
            fail_msg("round %d: %s port %u: %s", round, host, port, verdict.why);
        if (rules.list.len > 1) {
            swap_two(&rules.list);
            assert_int_equal(ask(&rules, host, strlen(host), port).allowed, expected);
        }

        /* One more rule that denies never opens anything. */
        *array_add(&rules.list) =
            (struct rule){ .host = text_copy(some_patterns[pick(ARRAY_LEN(some_patterns))]),
                           .action = RULE_DENY };
        assert_true(expected || !ask(&rules, host, strlen(host), port).allowed);
        rules_free(&rules);
    }
}

/* The same for every request to a host and port, since they share a connection; the nearest of several. */
static void a_ca_is_of_the_host_whichever_rule_allows_it(void **state)
{
    static const struct {
        const char *host, *ca;
        uint16_t port;
    } rows[] = {
        { "a.test", "near", 443 }, { "b.a.test", "far", 443 }, { "a.test", NULL, 8443 }, { "c.test", NULL, 443 }
    };
    autorules struct rules rules = RULES_NONE;

    (void)state;
    parse_rules("allow a.test 443,allow *.a.test,allow a.test 8443,allow a.test 443,allow c.test",
                NETWORK_RULES, &rules);
    rules.list.items[0].ca = text_copy("near");
    rules.list.items[1].ca = text_copy("far");
    strings_add(&rules.list.items[3].methods, "GET");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct verdict verdict = ask(&rules, rows[i].host, strlen(rows[i].host), rows[i].port);

        assert_true(verdict.allowed);
        assert_int_equal(verdict.inspect, rows[i].ca != NULL);
        assert_int_equal(verdict.ca != NULL, rows[i].ca != NULL);
        if (rows[i].ca)
            assert_string_equal(verdict.ca->ca, rows[i].ca);
    }
}

static struct rule mocked(const char *host, const char *method, const char *path)
{
    struct rule rule = { .host = text_copy(host), .action = RULE_MOCK, .mock = mock_new() };

    rule.place = text_format("%s%s%s", host, method ? method : "", path ? path : "");
    if (method)
        strings_add(&rule.methods, method);
    if (path)
        strings_add(&rule.paths, path);
    return rule;
}

/* The one that names it the most exactly answers, before any that allows and after any that denies. */
static void mocks_answer_for_what_they_name(void **state)
{
    static const struct {
        const char *host, *method, *path;
        enum reason reason;
        const char *place;
    } rows[] = {
        { "a.test", "GET", "/v1/users", REASON_MOCK, "a.testGET/v1/users" },
        { "a.test", "GET", "/v1/users?page=2", REASON_MOCK, "a.testGET/v1/users" },
        { "a.test", "POST", "/v1/users", REASON_MOCK, "a.test/v1/**" },
        { "a.test", "GET", "/v1/other", REASON_MOCK, "a.test/v1/**" },
        { "a.test", "GET", "/v1/denied", REASON_DENIED, "no" },
        { "a.test", "GET", "/", REASON_RULE, "yes" },
        { "a.test", "GET", "/v1/../x", REASON_DENIED, "no" },
        { "db", "GET", "/", REASON_MOCK, "db" },
        { "c.test", "GET", "/y", REASON_PATH, "c.test/x" },
        { "e.test", "POST", "/x", REASON_METHOD, "e.testGET/x" },
        { "c.test", NULL, NULL, REASON_MOCK, "c.test/x" },
        { "d.other", "GET", "/", REASON_NO_RULE, NULL },
    };
    struct rules rules = { .mode = NETWORK_RULES };

    (void)state;
    *array_add(&rules.list) = mocked("a.test", NULL, "/v1/**");
    *array_add(&rules.list) = mocked("a.test", "GET", "/v1/users");
    *array_add(&rules.list) = mocked("*.test", NULL, "/v1/users");
    *array_add(&rules.list) = mocked("db", NULL, NULL);
    *array_add(&rules.list) = mocked("c.test", NULL, "/x");
    *array_add(&rules.list) = mocked("e.test", "GET", "/x");
    *array_add(&rules.list) = mocked("e.test", "POST", "/y");
    *array_add(&rules.list) = (struct rule){ .host = text_copy("a.test"), .place = text_copy("yes") };
    *array_add(&rules.list) =
        (struct rule){ .host = text_copy("a.test"), .action = RULE_DENY, .place = text_copy("no") };
    strings_add(&rules.list.items[8].paths, "/v1/denied");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct question question = { .host = rows[i].host,
                                           .host_len = strlen(rows[i].host),
                                           .port = 443,
                                           .method = rows[i].method,
                                           .path = rows[i].path };
        struct verdict verdict;

        rules_verdict(&rules, &question, &verdict);
        if (verdict.reason != rows[i].reason)
            fail_msg("%s %s: %s", rows[i].host, rows[i].path, verdict.why);
        if (rows[i].place)
            assert_string_equal(verdict.rule->place, rows[i].place);
        assert_int_equal(verdict.allowed, verdict.reason == REASON_MOCK || verdict.reason == REASON_RULE);
        assert_int_equal(verdict.inspect, verdict.allowed);
    }
    rules_free(&rules);
}

static void what_nobody_has_set_is_no_network(void **state)
{
    const struct rules rules = { 0 };
    const struct spec spec = { 0 };
    struct verdict verdict = ask(&rules, "example.com", strlen("example.com"), 443);

    (void)state;
    assert_int_equal(spec.network, NETWORK_NONE);
    assert_false(verdict.allowed);
    assert_int_equal(verdict.reason, REASON_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_nobody_has_set_is_no_network),
        cmocka_unit_test(names_are_judged_as_the_table_says),
        cmocka_unit_test(a_zero_byte_hides_nothing),
        cmocka_unit_test(closed_addresses_stay_closed_in_an_open_network),
        cmocka_unit_test(nobody_is_told_to_open_this_machine_or_its_credentials),
        cmocka_unit_test(a_host_of_a_registry_is_proposed_as_one),
        cmocka_unit_test(a_name_leads_to_public_addresses_only),
        cmocka_unit_test(an_audit_lets_through_and_tells),
        cmocka_unit_test(an_audit_leads_where_the_rule_of_the_port_does),
        cmocka_unit_test(a_pinned_address_is_the_only_one),
        cmocka_unit_test(a_registry_may_lie_in_a_private_network),
        cmocka_unit_test(what_would_change_it_is_a_command),
        cmocka_unit_test(a_ca_is_of_the_host_whichever_rule_allows_it),
        cmocka_unit_test(without_a_network_no_rule_helps),
        cmocka_unit_test(requests_are_judged_when_they_are_seen),
        cmocka_unit_test(the_nearest_rule_is_named_with_the_request),
        cmocka_unit_test(what_denies_is_wider_than_what_allows),
        cmocka_unit_test(mocks_answer_for_what_they_name),
        cmocka_unit_test(random_rules_do_what_a_simple_model_does),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
