#include "base/array.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "tests/support/unit.h"

#include <stdlib.h>

static const struct command run = { .name = "run", .rows = options_of_run, .spec = true };
static const struct command plain = { .name = "plain", .rows = options_of_run };

enum { WORDS_MAX = 12 };

/* Parses `words`, which a NULL ends. */
static int parse(const struct command *command, const char *const *words, struct options *out,
                 struct error *err)
{
    static char storage[WORDS_MAX + 1][64];
    char *argv[WORDS_MAX + 2] = { storage[WORDS_MAX] };
    int argc = 1;

    for (; words[argc - 1]; argc++) {
        argv[argc] = storage[argc - 1];
        memcpy(argv[argc], words[argc - 1], strlen(words[argc - 1]) + 1);
    }
    return options_parse(command, argc, argv, out, err);
}

/* "flag=value ..." for what was parsed, then "| " and the words. */
static void show(const struct options *options, struct text *out)
{
    for (size_t i = 0; i < options->spec.len; i++) {
        text_add(out, options->spec.items[i].flag->name);
        if (options->spec.items[i].value)
            text_addf(out, "=%s", options->spec.items[i].value);
        text_add(out, " ");
    }
    text_add(out, "|");
    for (size_t i = 0; i < options->words.len; i++)
        text_addf(out, " %s", options->words.items[i]);
}

static void options_stand_before_the_first_word_and_before_dashes(void **state)
{
    static const struct {
        const char *words[WORDS_MAX];
        const char *want;
    } cases[] = {
        { { NULL }, "|" },
        { { "--" }, "|" },
        { { "make", "-j", "--rm" }, "| make -j --rm" },
        { { "--rm", "make" }, "rm | make" },
        { { "--rm", "--", "--rm", "x" }, "rm | --rm x" },
        { { "--", "--", "x" }, "| -- x" },
        { { "--read", "/a", "--read=/b", "x" }, "read=/a read=/b | x" },
        { { "--read=", "x" }, "read= | x" },
        { { "--read", "--rm", "x" }, "read=--rm | x" },
        { { "--env=A=b=c", "x" }, "env=A=b=c | x" },
        { { "-e", "A=1", "-eB=2", "x" }, "env=A=1 env=B=2 | x" },
        { { "-it", "x" }, "interactive tty | x" },
        { { "-iteA=1", "x" }, "interactive tty env=A=1 | x" },
        { { "-ite", "A=1", "x" }, "interactive tty env=A=1 | x" },
        { { "-", "x" }, "| - x" },
        { { "-u", "-1", "x" }, "user=-1 | x" },
        { { "" }, "| " },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        autooptions struct options options = OPTIONS_NONE;
        autotext struct text shown = TEXT_NONE;
        struct error err = { 0 };

        if (parse(&run, cases[i].words, &options, &err) < 0)
            fail_msg("%s", err.text);
        show(&options, &shown);
        assert_string_equal(text_string(&shown), cases[i].want);
        assert_int_equal(options.words.len, options.spec.command.len);
    }
}

static void what_is_no_option_is_refused_with_the_nearest(void **state)
{
    static const struct {
        const char *words[WORDS_MAX];
        const char *parts[2];
    } cases[] = {
        { { "--raed", "x" }, { "'--raed'", "did you mean --read?" } },
        { { "--raed=x" }, { "'--raed=x'", "did you mean --read?" } },
        { { "--quux" }, { "'--quux'", "cove run --help" } },
        { { "-Z" }, { "'-Z'", "cove run --help" } },
        { { "-itZ" }, { "'-itZ'", "cove run --help" } },
        { { "--read" }, { "--read needs a value", "PATH" } },
        { { "-e" }, { "--env needs a value", "KEY" } },
        { { "--rm=yes" }, { "--rm takes no value", "" } },
        { { "--\x1b[2J" }, { "\\x1b", "cove run --help" } },
        { { "--rea" },
          { "'--rea'", "did you mean --read?" } }, /* no abbreviations: they break with the next option */
        { { "--=x" }, { "'--=x'", "cove run --help" } },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        autooptions struct options options = OPTIONS_NONE;
        struct error err = { 0 };

        assert_int_equal(parse(&run, cases[i].words, &options, &err), -1);
        assert_int_equal(err.kind, ERROR_INVALID);
        assert_contains(err.text, cases[i].parts[0]);
        assert_contains(err.text, cases[i].parts[1]);
    }
}

static void run_options_are_set(void **state)
{
    static const char *const words[] = { "--summary", "-q",     "--report=f", "--explain", "--print-plan",
                                         "--dry-run", "--json", "-h",         NULL };
    autooptions struct options options = OPTIONS_NONE;
    struct error err = { 0 };

    (void)state;
    assert_int_equal(parse(&plain, words, &options, &err), 0);
    assert_string_equal(options.run.report, "f");
    assert_true(options.run.quiet && options.run.explain && options.run.print_plan && options.run.dry_run);
    assert_true(options.run.json && options.run.help && options.run.summary);
}

static void a_command_without_a_spec_has_no_flags_of_one(void **state)
{
    static const char *const words[] = { "--rm", NULL };
    autooptions struct options options = OPTIONS_NONE;
    struct error err = { 0 };

    (void)state;
    assert_int_equal(parse(&plain, words, &options, &err), -1);
}

/* Two options with one name or letter would hide one of them. */
static void every_name_and_letter_is_there_once(void **state)
{
    struct option one, other;

    (void)state;
    for (size_t i = 0; option_at(&run, i, &one); i++) {
        assert_non_null(one.help);
        assert_false(text_ends(one.help, "."));
        for (size_t j = i + 1; option_at(&run, j, &other); j++) {
            assert_string_not_equal(one.name, other.name);
            assert_true(!one.letter || one.letter != other.letter);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_stand_before_the_first_word_and_before_dashes),
        cmocka_unit_test(what_is_no_option_is_refused_with_the_nearest),
        cmocka_unit_test(run_options_are_set),
        cmocka_unit_test(a_command_without_a_spec_has_no_flags_of_one),
        cmocka_unit_test(every_name_and_letter_is_there_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
