#include "keeper/termfilter.h"

#include "base/array.h"
#include "tests/support/unit.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* What goes in, and what may come out; `out` NULL: the same.  Lengths are those of the literals, so
 * that a NUL may be in them. */
struct sample {
    const char *in, *out;
};

static const struct sample samples[] = {
    /* passes as it is */
    { "plain text\r\n\ttabs \b\a\v\f\x0e\x0f\x7f", NULL },
    { "h\xc3\xa9llo \xe2\x82\xac \xf0\x9f\x98\x80 \xed\x9f\xbf \xc2\xa0", NULL },
    { "\033[1;31mred\033[0m \033[38;2;1;2;3m \033[4:3m", NULL },
    { "\033[2J\033[H\033[10;20H\033[K\033[?25l\033[?1049h\033[1;24r", NULL },
    { "\033[?1000h\033[?1006h\033[?2004h\033[?2026h\033[?1;4l", NULL },
    { "\033[6n\033[5n\033[c\033[>c\033[=c\033[>q\033[?2026$p\033[?u\033[>1u\033[<u\033[>4;2m", NULL },
    { "\033[14t\033[16t\033[18t", NULL },
    { "\033(0lqk\033(B\033)0\0337\0338\033=\033>\033M\033D\033#8\033c\033Z", NULL },
    { "\033]11;?\033\\\033]10;?\a\033]4;1;?\033\\\033]12;#ff0000\a\033]112\a\033]104\a\033]4;1;rgb:aa/bb/cc\a",
      NULL },
    { "\033]8;;https://example.org/a?b=c\033\\link\033]8;;\033\\", NULL },
    { "\033]8;id=1;file://host/etc\alink\033]8;;\a", NULL },
    { "\033Pq#0;2;0;0;0#0~~@@vv$-\033\\", NULL },
    { "\033P0;1;0q\"1;1;10;10#0!10~\r\n-\033\\after", NULL },
    { "\033[ q\033[2 q\033[!p\033[1$r", NULL },
    { "a\032b", NULL },
    { "\033%G", NULL },
    /* titles, icon, directory, clipboard, notifications, files */
    { "a\033]0;title\ab", "ab" },
    { "a\033]2;title\033\\b", "ab" },
    { "a\033]1;icon\ab\033]l\ac", "abc" },
    { "a\033]7;file://host/evil\ab", "ab" },
    { "a\033]52;c;ZXZpbA==\ab", "ab" },
    { "a\033]52;c;?\ab\033]052;c;?\ac\033]0052;c;?\ad", "abcd" },
    { "a\033]9;note\ab\033]777;notify;a;b\ac\033]1337;File=:AAAA\ad\033]99;;x\033\\e", "abcde" },
    { "a\033]133;A\ab\033]633;E;x\ac\033]50;?\ad\033]22;x\ae\033]66;s=2;x\af", "abcdef" },
    { "a\033]8;;javascript:alert(1)\ab\033]8;;\a", "ab\033]8;;\a" },
    { "a\033]8;;vscode://x\ab\033]8\ac", "abc" },
    { "a\033]11;?\001\ab", "ab" },
    { "a\033]11;\xc2\x9c?\ab", "ab" },
    { "a\033]4;1;$(x)\ab\033]104;x\ac", "abc" },
    { "a\033]\ab\033];\ac", "abc" },
    { "a\033]R\033]P0112233b", "ab" },
    { "a\033kscreen title\033\\b", "ab" },
    /* DCS, APC, PM, SOS */
    { "a\033P$qm\033\\b\033P+q544e\033\\c\033Ptmux;\033\033]52;c;x\a\033\\d", "abc\033\\d" },
    { "a\033P>q\033\\b\033P0;1 q\033\\c\033P=1s\033\\d", "abcd" },
    { "a\033_Ga=T,t=f;L2V0Yw==\033\\b\033^pm\033\\c\033Xsos\033\\d", "abcd" },
    { "a\033_\033]52;c;x\ab", "ab" },
    /* an unfinished image is finished before the next sequence */
    { "\033Pq~~\033[1mx", "\033Pq~~\033\\\033[1mx" },
    { "\033Pq~\x05\x9b~\030x", "\033Pq~~\033\\x" },
    /* answerback, transfers, printing, windows, reports, other languages */
    { "a\005b", "ab" },
    { "a\033[\0051mb", "a\033[1mb" },
    { "**\030B00000000000000", "**B00000000000000" },
    { "a\033[5i\033[?5i\033[4ib", "ab" },
    { "a\033[21t\033[20t\033[22;0t\033[23;0t\033[3;0;0t\033[8;1;1t\033[t\033[14;1t\033[>2t\033[9tb", "ab" },
    { "a\033[1;1;1;1;1;1*yb\033[2;1yc", "abc" },
    { "a\033[12;3]b", "ab" },
    { "a\033[1$w\033[1$u\033[&ub", "ab" },
    { "a\033[62;1\"pb\033[?1000rc", "abc" },
    { "a\033[?2lb\033[?38hc\033[?25;38hd", "abcd" },
    { "a\033%@b\033 Gc\033!xd\033%/Ie", "abcde" },
    /* C1, and what is no UTF-8 */
    { "a\x9b"
      "31mb",
      "a\xef\xbf\xbd"
      "31mb" },
    { "a\xc2\x9b"
      "31mb\xc2\x9d"
      "0;x\ac",
      "a31mb0;x\ac" },
    { "a\xe2\x82"
      "b\xff\xc0\x80",
      "a\xef\xbf\xbd\xef\xbf\xbd"
      "b\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
    { "\xe2\033[1m", "\xef\xbf\xbd\033[1m" },
    { "\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
    { "a\033[1\xc2\x9bm", "am" },
    { "a\033\x9b"
      "1m",
      "a\xef\xbf\xbd"
      "1m" },
    /* unfinished, abandoned, controls in the middle */
    { "a\033[1;", "a" },
    { "a\033]52;c;x", "a" },
    { "a\033[1\033[2mb", "a\033[2mb" },
    { "a\033\033\033[1mb", "a\033[1mb" },
    { "a\033[1\n;2mb", "a\n\033[1;2mb" },
    { "a\033[1\030mb", "amb" },
    { "a\033]0;x\033[1mb", "a\033[1mb" },
    { "a\033]8;;http://x\033[1mb", "a\033[1mb" },
};

/* Cut into pieces of one, two, three ... bytes, and at each single place. */
static size_t run_cut(const char *in, size_t len, size_t first, size_t piece, unsigned char *out)
{
    struct termfilter *filter = malloc(sizeof *filter);
    size_t at = 0, used = 0;

    termfilter_start(filter, true);
    while (at < len) {
        size_t part = at == 0 && first ? first : piece;

        part = part < len - at ? part : len - at;
        used += termfilter_run(filter, (const unsigned char *)in + at, part, out + used);
        at += part;
    }
    free(filter);
    return used;
}

static void samples_come_out_as_they_should_however_they_are_cut(void **state)
{
    unsigned char out[1024];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
        const char *want = samples[i].out ? samples[i].out : samples[i].in;
        size_t len = strlen(samples[i].in);

        for (size_t piece = 1; piece <= len; piece++)
            for (size_t first = 0; first < len; first++) {
                size_t got = run_cut(samples[i].in, len, first, piece, out);

                out[got] = '\0';
                if (got != strlen(want) || memcmp(out, want, got) != 0)
                    fail_msg("sample %zu, pieces of %zu after %zu: \"%s\"", i, piece, first, (char *)out);
            }
    }
}

static size_t run_once(struct termfilter *filter, const char *in, unsigned char *out)
{
    return termfilter_run(filter, (const unsigned char *)in, strlen(in), out);
}

static void other_charsets_have_no_c1(void **state)
{
    struct termfilter filter;
    unsigned char out[64];

    (void)state;
    termfilter_start(&filter, false);
    size_t got = run_once(&filter,
                          "\xe9\xdb\x9b"
                          "1m\033%G",
                          out);
    assert_int_equal(got, 5);
    assert_memory_equal(out, "\xe9\xdb?1m", 5);
}

static void a_long_sequence_is_dropped_and_memory_is_bounded(void **state)
{
    static unsigned char in[100000], out[3 * sizeof in + TERMFILTER_HELD];
    static const char *const starts[] = { "\033[", "\033]8;;http://", "\033Pq", "\033P", "\033_", "\033(" };
    static const size_t passed[] = { 0, 0, sizeof in + 1, 0, 0, sizeof in - 3 };
    struct termfilter filter;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(starts); i++) {
        memset(in, '1', sizeof in);
        memcpy(in, starts[i], strlen(starts[i]));
        termfilter_start(&filter, true);
        size_t got = termfilter_run(&filter, in, sizeof in, out);
        got += run_once(&filter, "\030", out + got);
        if (i == 5)
            assert_int_equal(got, sizeof in); /* ESC ( 1 is whole, the rest is text */
        else
            assert_int_equal(got, i == 2 ? passed[i] + 1 : 0);
    }
}

static void what_was_switched_on_is_switched_off_at_the_end(void **state)
{
    static const struct sample ends[] = {
        { "text\033[m\033[0mtext", "" },
        { "hidden\033[8m", "\033[0m\017\033(B" },
        { "lines\016", "\033[0m\017\033(B" },
        { "lines\033(0", "\033[0m\017\033(B" },
        { "\033]8;;https://example.org\alink", "\033]8;;\033\\" },
        { "\033[4h", "\033[4l" },
        { "\033[4h\033[4l", "" },
        { "\033[2;5r", "\0337\033[r\0338" },
        { "\033[?7l\033[?6h", "\033[?6l\033[?7h" },
        { "\033[1;31m\033[2;5r\033c", "" },
        { "\033[?1049h\033[?25l", "\033[?25h\033[?1049l" },
        { "\033[?1049h\033[?25l\033[?25h\033[?1049l", "" },
        { "\033[?1000;1006h\033[?1000;1006l", "\033[?1000l\033[?1006l" },
        { "\033[>1u\033[>1u\033[<1u", "\033[<1u" },
        { "\033[>1u\033[<5u", "" },
        { "\033[>4;2m\033=", "\033[>4m\033>" },
        { "\033]11;#000000\a\033]10;red;blue\a", "\033]110\033\\\033]111\033\\" },
        { "\033]11;#000000\a\033]111\a\033]11;?\a", "" },
        { "\033Pq~~", "\033\\" },
        { "\033[?1003h\033c", "" },
    };
    struct termfilter filter;
    unsigned char out[256], last[TERMFILTER_END_MAX];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        termfilter_start(&filter, true);
        run_once(&filter, ends[i].in, out);
        size_t len = termfilter_end(&filter, last);
        if (len != strlen(ends[i].out) || memcmp(last, ends[i].out, len) != 0)
            fail_msg("end %zu: \"%.*s\"", i, (int)len, (char *)last);
    }
}

static void the_end_fits_its_buffer(void **state)
{
    struct termfilter filter;
    unsigned char out[4096], last[TERMFILTER_END_MAX];
    char in[64];

    (void)state;
    termfilter_start(&filter, true);
    for (int mode = 0; mode < 10000; mode++) {
        snprintf(in, sizeof in, "\033[?%dh", mode);
        run_once(&filter, in, out);
    }
    for (int number = 0; number < 20; number++) {
        snprintf(in, sizeof in, "\033]%d;1\a\033[>1u\033[=1u\033[>4;2m\033=", number);
        run_once(&filter, in, out);
    }
    run_once(&filter, "\033[?25l\033Pq", out);
    assert_in_range(termfilter_end(&filter, last), 100, TERMFILTER_END_MAX);
}

static void questions_are_counted(void **state)
{
    struct termfilter filter;
    unsigned char out[64];

    (void)state;
    termfilter_start(&filter, true);
    run_once(&filter, "\033[1mtext\033]0;x\a\033[21t", out);
    assert_int_equal(filter.asked, 0);
    run_once(&filter, "\033[6n\033]11;?\a\033[14t", out);
    assert_int_equal(filter.asked, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_come_out_as_they_should_however_they_are_cut),
        cmocka_unit_test(other_charsets_have_no_c1),
        cmocka_unit_test(a_long_sequence_is_dropped_and_memory_is_bounded),
        cmocka_unit_test(what_was_switched_on_is_switched_off_at_the_end),
        cmocka_unit_test(the_end_fits_its_buffer),
        cmocka_unit_test(questions_are_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
