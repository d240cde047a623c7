/* Rules of a .gitignore and a path, with a line between them.  No answer takes long, and a path that a rule
 * shows is asked again with one more rule behind it, which then decides. */

#include "base/own.h"
#include "base/text.h"
#include "changes/hiding.h"
#include "changes/ignore.h"
#include "changes/tricks.h"
#include "tests/fuzz/fuzz.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void try_rules(const char *rules_text, size_t len, const char *path)
{
    struct ignore_rules rules = IGNORE_RULES_NONE, more = IGNORE_RULES_NONE;
    autofree char *with = calloc(1, len + 4);

    check(with != NULL);
    memcpy(with, rules_text, len);
    memcpy(with + len, "\n*\n", 3);
    ignore_parse(&rules, rules_text, len);
    ignore_parse(&more, with, len + 3);
    for (int directory = 0; directory < 2; directory++) {
        enum ignore_answer answer = ignore_ask(&rules, path, directory);

        check(answer == IGNORE_UNSAID || answer == IGNORE_NO || answer == IGNORE_YES ||
              answer == IGNORE_TOO_LONG);
        check(rules.steps <= IGNORE_STEPS_MAX &&
              (answer != IGNORE_TOO_LONG || rules.steps == IGNORE_STEPS_MAX));
        check(!*path || path[strlen(path) - 1] == '/' || ignore_ask(&more, path, directory) == IGNORE_YES);
    }
    ignore_rules_free(&rules);
    ignore_rules_free(&more);
}

/* What is shown of a line has no control character, and of plain lines all. */
static void try_shown(const char *line, size_t len)
{
    autotext struct text shown = TEXT_NONE;

    tricks_add_shown(&shown, line, len);
    for (size_t i = 0; i < shown.len; i++)
        check((unsigned char)shown.data[i] >= 0x20 || shown.data[i] == '\t');
    (void)tricks_added("", 0, line, len);
    (void)tricks_added(line, len / 2, line, len);
    check(tricks_added(line, len, line, len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autofree char *bytes = calloc(1, size + 1);
    size_t half;

    check(bytes != NULL);
    if (size)
        memcpy(bytes, data, size);
    half = strcspn(bytes, "\n");
    try_rules(bytes + half, size - half, bytes[0] == '\n' ? "a/b" : "c");
    bytes[half] = '\0';
    if (half < 200 && size < 5000)
        try_rules(bytes + half + (half < size), size - half - (half < size), bytes);
    try_shown(bytes, size);
    return 0;
}
