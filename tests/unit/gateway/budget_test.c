#include "gateway/budget.h"

#include "base/text.h"
#include "tests/support/unit.h"

static const uint64_t second = 1000000, minute = 60 * second;

/* Two rules for a.test, of which one has bounds, and one for b.test. */
static void make(struct rules *rules, struct budget *budget, const struct amounts *most,
                 const struct rule *bounds)
{
    struct rule_list list = RULE_LIST_NONE;

    *array_add(&list) = (struct rule){ .host = text_copy("a.test") };
    *array_add(&list) = (struct rule){ .host = text_copy("a.test"),
                                       .place = text_copy("p.yaml:3"),
                                       .rate = bounds->rate,
                                       .bytes = bounds->bytes };
    *array_add(&list) = (struct rule){ .host = text_copy("b.test") };
    rules_init(rules, NETWORK_RULES, &list);
    rules->budget = *most;
    rule_list_free(&list);
    budget_init(budget, rules, NULL, NULL);
}

static struct verdict ask(const struct rules *rules, const char *host)
{
    const struct question question = { .host = host, .host_len = strlen(host), .port = 443 };
    struct verdict verdict;

    rules_verdict(rules, &question, &verdict);
    return verdict;
}

static bool request(struct budget *budget, const char *host, uint64_t now, struct verdict *out)
{
    *out = ask(budget->rules, host);
    assert_true(out->allowed);

    bool may = budget_request(budget, out, now);

    assert_int_equal(may, out->allowed);
    return may;
}

static void without_bounds_everything_passes(void **state)
{
    autorules struct rules rules = RULES_NONE;
    struct budget budget;
    struct verdict verdict;

    (void)state;
    make(&rules, &budget, &(struct amounts){ 0 }, &(struct rule){ 0 });
    assert_false(budget.on);
    for (int i = 0; i < 1000; i++) {
        assert_true(request(&budget, "a.test", 0, &verdict));
        assert_true(budget_connection(&budget, &verdict));
        assert_int_equal(budget_room(&budget, &verdict.bounds, 1 << 30), 1 << 30);
        budget_passed(&budget, &verdict.bounds, 1 << 30);
    }
    budget_free(&budget);
}

static void a_budget_is_spent_once(void **state)
{
    autorules struct rules rules = RULES_NONE;
    struct budget budget;
    struct verdict verdict;

    (void)state;
    make(&rules, &budget, &(struct amounts){ .requests = 3, .connections = 2 }, &(struct rule){ 0 });
    assert_true(budget.on);
    for (int i = 0; i < 3; i++)
        assert_true(request(&budget, i ? "a.test" : "b.test", 0, &verdict));
    assert_false(request(&budget, "b.test", 3600 * second, &verdict));
    assert_int_equal(verdict.reason, REASON_BUDGET);
    assert_string_equal(verdict.why, "the budget of 3 requests is spent (network.budget.requests)");
    assert_int_equal(budget.spent.requests, 3);

    verdict = ask(&rules, "a.test");
    assert_true(budget_connection(&budget, &verdict) && budget_connection(&budget, &verdict));
    assert_false(budget_connection(&budget, &verdict));
    assert_contains(verdict.why, "2 connections");
    budget_free(&budget);
}

static void no_byte_more_passes_than_there_are(void **state)
{
    autorules struct rules rules = RULES_NONE;
    struct budget budget;
    struct verdict a, b;

    (void)state;
    make(&rules, &budget, &(struct amounts){ .bytes = 1000 }, &(struct rule){ .bytes = 300 });
    a = ask(&rules, "a.test");
    b = ask(&rules, "b.test");
    assert_int_equal(a.bounds.len, 1);
    assert_int_equal(b.bounds.len, 0);
    assert_int_equal(budget_room(&budget, &a.bounds, 500), 300);
    assert_int_equal(budget_room(&budget, &b.bounds, 5000), 1000);
    budget_passed(&budget, &a.bounds, 300);
    assert_int_equal(budget_room(&budget, &a.bounds, 1), 0);
    assert_int_equal(budget_room(&budget, &b.bounds, 5000), 700);
    assert_false(budget_request(&budget, &a, 0));
    assert_string_equal(a.why, "p.yaml:3 allows 300 bytes to and from a.test, and they are spent");
    assert_true(budget_request(&budget, &b, 0));
    budget_passed(&budget, &b.bounds, 700);
    assert_false(budget_has_bytes(&budget, &b));
    assert_string_equal(b.why, "the budget of 1000 bytes is spent (network.budget.bytes)");
    assert_int_equal(b.reason, REASON_BUDGET);
    budget_free(&budget);
}

static void a_rate_is_counted_anew_in_each_time(void **state)
{
    static const struct {
        struct rate rate;
        uint64_t at;
        uint32_t passes, retry;
    } rows[] = { { { 3, 1 }, 0, 3, 1 },
                 { { 3, 1 }, 999999, 3, 1 },
                 { { 600, 60 }, 0, 600, 60 },
                 { { 2, 60 }, 30 * second + 1, 2, 60 } };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint64_t period = rows[i].rate.seconds * second, at = 7 * minute + rows[i].at;
        autorules struct rules rules = RULES_NONE;
        struct budget budget;
        struct verdict verdict;

        make(&rules, &budget, &(struct amounts){ 0 }, &(struct rule){ .rate = rows[i].rate });
        for (uint32_t n = 0; n < rows[i].passes; n++)
            assert_true(request(&budget, "a.test", at, &verdict));
        assert_true(verdict.inspect);
        assert_false(request(&budget, "a.test", at, &verdict));
        assert_int_equal(verdict.reason, REASON_RATE);
        assert_int_equal(verdict.retry_s, rows[i].retry);
        assert_contains(verdict.why, rows[i].rate.seconds == 1 ? "requests a second" : "requests a minute");
        assert_true(request(&budget, "b.test", at, &verdict));
        assert_false(request(&budget, "a.test", at + period - 1, &verdict));
        assert_int_equal(verdict.retry_s, 1);
        assert_true(request(&budget, "a.test", at + period, &verdict));
        budget_free(&budget);
    }
}

static void the_next_gateway_goes_on_where_the_last_one_was(void **state)
{
    autorules struct rules rules = RULES_NONE;
    struct budget budget;
    struct verdict verdict;

    (void)state;
    make(&rules, &budget, &(struct amounts){ .requests = 5 }, &(struct rule){ .bytes = 300 });
    budget_free(&budget);
    budget_init(&budget, &rules, &(struct amounts){ .requests = 4 }, (const uint64_t[]){ 0, 299, 0 });
    assert_true(request(&budget, "a.test", 0, &verdict));
    assert_int_equal(budget_room(&budget, &verdict.bounds, 10), 1);
    assert_false(request(&budget, "a.test", 0, &verdict));
    assert_int_equal(budget.told.requests, 4);
    budget_free(&budget);
}

static void what_a_gateway_that_died_had_counted_of_rates_is_taken_as_all_of_them(void **state)
{
    autorules struct rules rules = RULES_NONE;
    struct budget budget;
    struct verdict verdict;
    const uint64_t at = 7 * minute + minute / 2;

    (void)state;
    make(&rules, &budget, &(struct amounts){ 0 }, &(struct rule){ .rate = { 2, 60 } });
    assert_true(request(&budget, "a.test", at, &verdict));
    budget_spend_rates(&budget, at);
    assert_false(request(&budget, "a.test", at, &verdict));
    assert_int_equal(verdict.reason, REASON_RATE);
    assert_int_equal(verdict.retry_s, 60);
    assert_true(request(&budget, "b.test", at, &verdict));
    assert_false(request(&budget, "a.test", 8 * minute, &verdict));
    assert_true(request(&budget, "a.test", at + minute, &verdict));
    budget_free(&budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_bounds_everything_passes),
        cmocka_unit_test(a_budget_is_spent_once),
        cmocka_unit_test(no_byte_more_passes_than_there_are),
        cmocka_unit_test(a_rate_is_counted_anew_in_each_time),
        cmocka_unit_test(the_next_gateway_goes_on_where_the_last_one_was),
        cmocka_unit_test(what_a_gateway_that_died_had_counted_of_rates_is_taken_as_all_of_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
