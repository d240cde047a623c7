#include "base/array.h"
#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "spec/node.h"
#include "tests/support/unit.h"

typedef int reader(const char *bytes, size_t len, const char *shown, struct node *out, struct error *err);

static char *as_json(reader *read, const char *bytes)
{
    autonode struct node node = NODE_NONE;
    struct text out = TEXT_NONE;
    struct error err = { 0 };

    if (read(bytes, strlen(bytes), "file", &node, &err) < 0)
        fail_msg("%s", err.text);
    node_write_json(&node, &out);
    return text_steal(&out);
}

static void yaml_scalars_follow_the_core_schema(void **state)
{
    static const struct {
        const char *yaml, *json;
    } cases[] = {
        { "{}", "{}" },
        { "[]", "[]" },
        { "a: true\nb: False\nc: TRUE", "{\"a\":true,\"b\":false,\"c\":true}" },
        { "[yes, no, on, off, y, n, Yes, NO]", "[\"yes\",\"no\",\"on\",\"off\",\"y\",\"n\",\"Yes\",\"NO\"]" },
        { "[~, null, Null, NULL, ]", "[null,null,null,null]" },
        { "[\"true\", 'null', \"1\"]", "[\"true\",\"null\",\"1\"]" },
        { "[1, -1, 1.5, 1e3, 30m, 1h, 0x10, ., +, 1e]",
          "[1,-1,1.5,1e3,\"30m\",\"1h\",\"0x10\",\".\",\"+\",\"1e\"]" },
        { "a: |\n  x\n  y\n", "{\"a\":\"x\\ny\\n\"}" },
        { "b: 1\na: {d: 1, c: [x]}\n", "{\"a\":{\"c\":[\"x\"],\"d\":1},\"b\":1}" },
        { "---\na: 1\n...\n", "{\"a\":1}" },
        { "# comment\na: 1 # more\n", "{\"a\":1}" },
        { "a: \"\\u00e4\\n\"\n", "{\"a\":\"\xc3\xa4\\n\"}" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        autofree char *json = as_json(node_read_yaml, cases[i].yaml);

        assert_string_equal(json, cases[i].json);
    }
}

static void line_ends_of_windows_change_nothing(void **state)
{
    autofree char *unix_ends = as_json(node_read_yaml, "a: x\nb:\n  - y\n  - |\n    z\n");
    autofree char *windows_ends = as_json(node_read_yaml, "a: x\r\nb:\r\n  - y\r\n  - |\r\n    z\r\n");

    (void)state;
    assert_string_equal(unix_ends, windows_ends);
}

/* Each document is refused, and the message has the file, the line and a word of the reason. */
static void what_two_readers_could_read_differently_is_refused(void **state)
{
    static const struct {
        const char *yaml, *line, *reason;
    } cases[] = {
        { "", "file:1:", "empty" },
        { "# only a comment\n", "file:", "empty" },
        { "a: 1\na: 2\n", "file:2:", "twice" },
        { "a: 1\n\"a\": 2\n", "file:2:", "twice" },
        { "a: &x 1\nb: *x\n", "file:1:", "anchors" },
        { "a: &x {}\n", "file:1:", "anchors" },
        { "a: &x []\n", "file:1:", "anchors" },
        { "a: 1\nb: *x\n", "file:2:", "aliases" },
        { "a: !!str 1\n", "file:1:", "tags" },
        { "a: ! 1\n", "file:1:", "tags" },
        { "a: !x {}\n", "file:1:", "tags" },
        { "a: !x []\n", "file:1:", "tags" },
        { "!x a: 1\n", "file:1:", "tags" },
        { "&x a: 1\n", "file:1:", "anchors" },
        { "%YAML 1.1\n---\na: 1\n", "file:", "directives" },
        { "%TAG ! tag:x,2000:\n---\na: 1\n", "file:", "directives" },
        { "a: 1\n---\nb: 2\n", "file:2:", "second document" },
        { "? [x]\n: 1\n", "file:1:", "plain word" },
        { "? {x: 1}\n: 1\n", "file:1:", "plain word" },
        { "? \n: 1\n", "file:", "empty" },
        { "a: [1, 2\nb: 3\n", "file:2:", "no YAML" },
        { "a: {b: 1\n", "file:2:", "no YAML" },
        { "a: \"x\n", "file:", "no YAML" },
        { "\tb: 1\n", "file:1:", "no YAML" },
        { "a: \xff\n", "file:", "no YAML" },
        { "a: \xc0\x80\n", "file:", "no YAML" },
        { "a: \x01\n", "file:", "no YAML" },
        { "\xef\xbb\xbf"
          "a: 1\n",
          "file:1:", "byte order mark" },
        { "a: 1\n\xef\xbb\xbf"
          "b: 1\n",
          "file:2:", "byte order mark" },
        { "\xff\xfe"
          "a\0:\0",
          "file:", "" },
        { "# x\xe2\x80\xa8"
          "a: 1\n",
          "file:1:", "hidden line end" },
        { "# x\xc2\x85"
          "a: 1\n",
          "file:1:", "hidden line end" },
        { "a: 1\n# \xe2\x80\xae\n", "file:2:", "reorders" },
        { "# x\ra: 1\n", "file:1:", "carriage return" },
        { "a: \"\\0\"\n", "file:1:", "zero byte" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct node node = NODE_NONE;
        struct error err = { 0 };

        if (node_read_yaml(cases[i].yaml, strlen(cases[i].yaml), "file", &node, &err) == 0)
            fail_msg("taken: %s", cases[i].yaml);
        assert_int_equal(err.kind, ERROR_INVALID);
        assert_contains(err.text, cases[i].line);
        assert_contains(err.text, cases[i].reason);
        assert_int_equal(node.len, 0);
    }
}

static void a_zero_byte_is_refused(void **state)
{
    static const char bytes[] = "a: 1\n\0b: 2\n";
    struct node node = NODE_NONE;
    struct error err = { 0 };

    (void)state;
    assert_int_equal(node_read_yaml(bytes, sizeof bytes - 1, "file", &node, &err), -1);
    assert_contains(err.text, "file:2:");
    assert_int_equal(node_read_json("{}\0", 3, "file", &node, &err), -1);
}

static void depth_and_size_are_bounded(void **state)
{
    static reader *const readers[] = { node_read_yaml, node_read_json };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(readers); i++) {
        for (unsigned depth = NODE_DEPTH_MAX - 1; depth <= NODE_DEPTH_MAX; depth++) {
            autotext struct text nested = TEXT_NONE;
            autonode struct node node = NODE_NONE;
            struct error err = { 0 };

            for (unsigned at = 0; at < depth; at++)
                text_add(&nested, "[");
            text_add(&nested, "1");
            for (unsigned at = 0; at < depth; at++)
                text_add(&nested, "]");
            assert_int_equal(readers[i](nested.data, nested.len, "file", &node, &err),
                             depth < NODE_DEPTH_MAX ? 0 : -1);
        }

        autotext struct text large = TEXT_NONE;
        struct node node = NODE_NONE;
        struct error err = { 0 };

        while (large.len <= NODE_BYTES_MAX)
            text_add(&large, "                                        ");
        assert_int_equal(readers[i](large.data, large.len, "file", &node, &err), -1);
        assert_contains(err.text, "1 MB");
    }
}

static void a_mapping_has_a_bounded_number_of_keys(void **state)
{
    autotext struct text many = TEXT_NONE;
    struct node node = NODE_NONE;
    struct error err = { 0 };

    (void)state;
    for (int i = 0; i <= NODE_KEYS_MAX; i++)
        text_addf(&many, "k%d: 1\n", i);
    assert_int_equal(node_read_yaml(many.data, many.len, "file", &node, &err), -1);
    assert_contains(err.text, "file:1025:");
}

static void yaml_values_know_their_lines(void **state)
{
    static const char yaml[] = "a: 1\n\nb:\n  c:\n    - x\n    - y\n";
    autonode struct node node = NODE_NONE;
    struct error err = { 0 };

    (void)state;
    assert_int_equal(node_read_yaml(yaml, strlen(yaml), "file", &node, &err), 0);
    assert_int_equal(node_get(&node, "a")->line, 1);
    assert_int_equal(node_get(&node, "b")->line, 3);
    assert_int_equal(node_get(node_get(&node, "b"), "c")->line, 4);
    assert_int_equal(node_get(node_get(&node, "b"), "c")->items[1].line, 6);
}

static void json_values_know_their_lines(void **state)
{
    static const char json[] = "\n{ \"a\" : \"x\\\"}{\\\\\",\n\"b\":\n[1,\n{},[],true,\n"
                               "{\"=hex\" : \"ff\" },\nnull],\"c\"\n:1.5}\n";
    autonode struct node node = NODE_NONE;
    struct error err = { 0 };

    (void)state;
    assert_int_equal(node_read_json(json, strlen(json), "file", &node, &err), 0);
    assert_int_equal(node.line, 2);
    assert_int_equal(node_get(&node, "a")->line, 2);

    const struct node *list = node_get(&node, "b");

    assert_int_equal(list->line, 4);
    assert_int_equal(list->len, 6);
    assert_int_equal(list->items[0].line, 4);
    assert_int_equal(list->items[3].line, 5);
    assert_int_equal(list->items[4].line, 6);
    assert_string_equal(list->items[4].text, "\xff");
    assert_int_equal(list->items[5].line, 7);
    assert_int_equal(node_get(&node, "c")->line, 8);
}

static void json_is_strict(void **state)
{
    static const char *const cases[] = {
        "",
        "{",
        "{\"a\":1,}",
        "{\"a\":1,\"a\":2}",
        "{'a':1}",
        "{a:1}",
        "[01]",
        "[+1]",
        "[NaN]",
        "// x\n{}",
        "{} {}",
        "\"\\u0000\"",
        "\"\xff\"",
        "\xef\xbb\xbf{}",
        "{\"=hex\":\"f\"}",
        "{\"=hex\":\"FF\"}",
        "{\"=hex\":\"00\"}",
        "{\"=hex\":\"0g\"}",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct node node = NODE_NONE;
        struct error err = { 0 };

        if (node_read_json(cases[i], strlen(cases[i]), "file", &node, &err) == 0)
            fail_msg("taken: %s", cases[i]);
        assert_contains(err.text, "file:");
    }
}

static void bytes_that_are_no_text_survive_json(void **state)
{
    static const char *const cases[] = {
        "", "plain", "\xff\xfe", "a\xc3", "\xef\xbf\xbd", "\xef\xbf\xbd\xff", "\x7f\x01\n\"\\"
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        autonode struct node node = { .kind = NODE_LIST }, again = NODE_NONE;
        autotext struct text json = TEXT_NONE;
        struct error err = { 0 };

        node_add(&node, NULL, NODE_STRING, cases[i]);
        node_write_json(&node, &json);
        assert_int_equal(node_read_json(json.data, json.len, "file", &again, &err), 0);
        assert_string_equal(again.items[0].text, cases[i]);
    }
}

static void a_value_is_shown_inert_and_not_too_long(void **state)
{
    autotext struct text shown = TEXT_NONE, cut = TEXT_NONE, wide = TEXT_NONE;

    (void)state;
    node_show_text("\x1b[2Jx\n", &shown);
    assert_string_equal(text_string(&shown), "'\\x1b[2Jx\\x0a'");
    for (int i = 0; i < 60; i++)
        text_add(&wide, "\xe2\x82\xac");
    node_show_text(text_string(&wide), &cut);
    assert_int_equal(cut.len, 33 * 3 + 5);
    assert_true(text_ends(text_string(&cut), "\xe2\x82\xac...'"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(yaml_scalars_follow_the_core_schema),
        cmocka_unit_test(line_ends_of_windows_change_nothing),
        cmocka_unit_test(what_two_readers_could_read_differently_is_refused),
        cmocka_unit_test(a_zero_byte_is_refused),
        cmocka_unit_test(depth_and_size_are_bounded),
        cmocka_unit_test(a_mapping_has_a_bounded_number_of_keys),
        cmocka_unit_test(yaml_values_know_their_lines),
        cmocka_unit_test(json_values_know_their_lines),
        cmocka_unit_test(json_is_strict),
        cmocka_unit_test(bytes_that_are_no_text_survive_json),
        cmocka_unit_test(a_value_is_shown_inert_and_not_too_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
