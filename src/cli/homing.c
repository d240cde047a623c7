#include "cli/homing.h"

#include "base/text.h"
#include "box/plan.h"
#include "cli/say.h"
#include "keeper/live_main.h"

#include <inttypes.h>

void homing_announce(const struct plan *plan)
{
    say_warning("--workspace live: ordinary changes go to %.200s as they are made; what acts by merely being "
                "there waits for you",
                plan->workspace);
}

/* Git's own are too many to be listed. */
static const char *const says[BRING_KINDS] = {
    [BRING_WAITS] = "waits for your consent",
    [BRING_CONFLICT] = "is yours as it is on the host",
    [BRING_FAILED] = "was not brought home",
};

static void tell_kind(const struct live_end *end, enum bring_kind kind)
{
    enum { SHOWN_MAX = 10 };
    uint64_t shown = 0;

    if (!says[kind])
        return;
    for (size_t i = 0; i < end->rests.len && shown < SHOWN_MAX; i++) {
        const struct bring_rest *rest = &end->rests.items[i];

        if (rest->kind != kind)
            continue;
        say_warning("live: %.200s %s: %.150s", rest->path, says[kind], rest->why);
        shown++;
    }
    if (end->counts[kind] > shown)
        say_warning("live: and %" PRIu64 " more %s", end->counts[kind] - shown, says[kind]);
}

void homing_tell(const struct live_end *end, bool discarded, bool quiet)
{
    bool left = false;

    if (end->problem.kind != ERROR_NONE)
        say_warning("live: %s", end->problem.text);
    if (quiet)
        return;
    for (enum bring_kind kind = 0; kind < BRING_KINDS; kind++) {
        left = left || end->counts[kind];
        tell_kind(end, kind);
    }
    if (end->counts[BRING_GIT])
        say_warning("live: %" PRIu64 " of git's own files stay inside; cove apply brings commits home",
                    end->counts[BRING_GIT]);
    if (end->slow)
        say_warning("live: there was too much to watch; some of it came later than at once");
    if (left)
        say_warning(discarded ? "live: what did not go home was discarded (--rm)"
                              : "live: the sandbox keeps it; see cove diff, then cove apply");
}
