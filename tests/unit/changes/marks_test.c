#include "changes/marks.h"

#include "tests/support/unit.h"

static void an_origin_must_be_whole(void **state)
{
    unsigned char good[21 + 8] = { 0, 0xfb, 29, 0, 1 }, bad[sizeof good];
    struct origin origin;

    (void)state;
    memset(good + 21, 7, 8);
    assert_true(mark_parse_origin(good, sizeof good, &origin));
    assert_int_equal(origin.type, 1);
    assert_int_equal(origin.len, 8);
    assert_int_equal(origin.bytes[7], 7);
    for (size_t i = 0; i < 3; i++) {
        memcpy(bad, good, sizeof bad);
        bad[i] ^= 1;
        assert_false(mark_parse_origin(bad, sizeof bad, &origin));
    }
    for (size_t len = 0; len < sizeof good; len++)
        assert_false(mark_parse_origin(good, len, &origin));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_origin_must_be_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
