#include "cli/paint.h"

#include "base/array.h"
#include "base/text.h"
#include "changes/tricks.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool paint_is_terminal(FILE *out)
{
    return isatty(fileno(out));
}

static bool wants_colour(FILE *out)
{
    const char *no = getenv("NO_COLOR"), *terminal = getenv("TERM");

    return paint_is_terminal(out) && !(no && *no) && terminal && strcmp(terminal, "dumb") != 0;
}

/* By how a line begins.  Bytes of files come behind a sign, so they cannot begin like the other ones. */
static const struct {
    const char *begin, *colour;
} colours[] = {
    { "# ", "\033[33m" },       { "@@ ", "\033[36m" },      { "diff --git ", "\033[1m" },
    { "--- ", "\033[1m" },      { "+++ ", "\033[1m" },      { "+", "\033[32m" },
    { "-", "\033[31m" },        { "rename ", "\033[1m" },   { "new file ", "\033[1m" },
    { "old mode ", "\033[1m" }, { "new mode ", "\033[1m" }, { "deleted file ", "\033[1m" },
};

static const char *colour_of(const char *line, size_t len)
{
    for (size_t i = 0; i < ARRAY_LEN(colours); i++)
        if (len >= strlen(colours[i].begin) && memcmp(line, colours[i].begin, strlen(colours[i].begin)) == 0)
            return colours[i].colour;
    return NULL;
}

static void add_line(struct text *shown, const char *line, size_t len, bool coloured)
{
    const char *colour = coloured ? colour_of(line, len) : NULL;

    text_add(shown, colour ? colour : "");
    tricks_add_shown(shown, line, len);
    text_add(shown, colour ? "\033[m\n" : "\n");
}

void paint_inert(FILE *out, const struct text *patch, size_t most)
{
    autotext struct text shown = TEXT_NONE;
    const char *at = text_string(patch), *end = at + patch->len;
    bool coloured = wants_colour(out);
    size_t lines = 0;

    for (; at < end; lines++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));

        if (lines < most)
            add_line(&shown, at, (size_t)((newline ? newline : end) - at), coloured);
        at = newline ? newline + 1 : end;
    }
    if (lines > most)
        text_addf(&shown, "... and %zu lines more\n", lines - most);
    fputs(text_string(&shown), out);
}

void paint_patch(FILE *out, const struct text *patch)
{
    if (paint_is_terminal(out))
        paint_inert(out, patch, SIZE_MAX);
    else
        fwrite(text_string(patch), 1, patch->len, out);
}
