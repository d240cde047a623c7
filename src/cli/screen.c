#include "cli/screen.h"

#include "base/memory.h"
#include "base/own.h"
#include "cli/paint.h"
#include "keeper/terminal.h"

#include <errno.h>

static void start_filter(struct screen *screen)
{
    termfilter_start(&screen->filter, terminal_is_utf8(fileno(screen->file)));
}

void screen_open(struct screen *screen, FILE *file)
{
    *screen = (struct screen){ .file = file, .terminal = paint_is_terminal(file) };
    if (screen->terminal)
        start_filter(screen);
}

static void write_out(struct screen *screen, const void *bytes, size_t len)
{
    errno = 0;
    if (!screen->failed && (fwrite(bytes, 1, len, screen->file) != len || fflush(screen->file) != 0))
        screen->failed = errno ? errno : EIO;
}

void screen_put(struct screen *screen, const void *bytes, size_t len)
{
    if (!screen->terminal) {
        write_out(screen, bytes, len);
        return;
    }

    autofree unsigned char *safe = memory_resize(NULL, 3 * len + TERMFILTER_HELD);

    write_out(screen, safe, termfilter_run(&screen->filter, bytes, len, safe));
}

void screen_settle(struct screen *screen)
{
    unsigned char last[TERMFILTER_END_MAX];

    if (!screen->terminal)
        return;
    write_out(screen, last, termfilter_end(&screen->filter, last));
    start_filter(screen);
}
