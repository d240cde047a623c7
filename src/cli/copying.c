#include "cli/copying.h"

#include "base/clock.h"
#include "base/text.h"
#include "box/private_copy.h"
#include "cli/say.h"
#include "cli/view.h"
#include "keeper/held.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

enum { PATIENCE_US = 500000, BEAT_US = 100000 };

/* When the next word is due. */
struct progress {
    uint64_t next;
    bool shown, watched;
};

static bool go_on(void *owner, uint64_t files, uint64_t bytes)
{
    struct progress *progress = owner;
    uint64_t now = clock_us();

    if (now >= progress->next && progress->watched) {
        autotext struct text size = TEXT_NONE;

        view_space(bytes, &size);
        fprintf(stderr, "\rcopying the workspace: %" PRIu64 " files, %s\033[K", files, text_string(&size));
        fflush(stderr);
        progress->next = now + BEAT_US;
        progress->shown = true;
    }
    return !held_waits();
}

int copying_take(struct plan *plan, const char *state, const struct sandbox_dir *dir, struct error *err)
{
    struct progress progress = { .next = clock_us() + PATIENCE_US, .watched = isatty(STDERR_FILENO) };
    struct copytree how = { .from = -1, .to = -1, .go_on = go_on, .owner = &progress };
    autostrings struct strings notes = STRINGS_NONE;
    int result = private_copy_take(plan, state, dir, &how, &notes, err);

    if (progress.shown)
        fputs("\r\033[K", stderr);
    for (size_t i = 0; result == 0 && i < notes.len; i++)
        say_warning("left out of the copy: %s", notes.items[i]);
    return result;
}
