/* How a sandbox that stays ends: gently, at once, or because of something. */

#include "keeper/stay_inner.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "box/box.h"
#include "init/wire.h"
#include "sys/sys.h"

#include <signal.h>

/* Who is at rest can neither end nor die. */
static void give_up_copy(struct keeper *keeper)
{
    struct error err;

    if (!midway_is_under_way(&keeper->checkpoints))
        return;
    midway_abandon(&keeper->checkpoints);
    error_set(&err, ERROR_REFUSED, "this sandbox is being stopped");
    visitors_copied(keeper, &err);
}

void keeper_kill(struct keeper *keeper)
{
    give_up_copy(keeper);
    sys_pidfd_kill(keeper->box->pidfd, SIGKILL);
    if (keeper->paused) /* in some groups nobody dies who is frozen */
        (void)freezer_set(&keeper->box->freezer, false);
    keeper->killed = true;
}

void keeper_end(struct keeper *keeper, uint64_t patience_ms)
{
    struct message end = { .kind = MESSAGE_END, .signal = SIGTERM, .patience_ms = patience_ms };

    if (keeper->phase >= PHASE_ENDING && patience_ms)
        return;
    give_up_copy(keeper);
    keeper_resume(keeper); /* who is stopped cannot end */
    services_stop(keeper);
    keeper->phase = PHASE_ENDING;
    keeper->dead_by = clock_us() + (patience_ms + STAY_EMPTY_MS) * 1000;
    if (keeper->init.fd < 0 || wire_send(keeper->init.fd, &end, NULL, 0) < 0)
        keeper_kill(keeper);
}

void keeper_fail(struct keeper *keeper, const struct error *error)
{
    if (keeper->phase >= PHASE_ENDING)
        return;
    keeper->result.reason = RESULT_FAILED;
    keeper->result.error = *error;
    keeper->phase = PHASE_ENDING;
    keeper_kill(keeper);
}

void keeper_violated(struct keeper *keeper, const char *what)
{
    struct error error;

    error_set(&error, ERROR_REFUSED, "the sandbox was ended because %s", what);
    keeper_fail(keeper, &error);
}

void keeper_limited(struct keeper *keeper, enum limit_id limit)
{
    const struct limit_choice *choice = &keeper->meter.limits->items[limit];
    autotext struct text shown = TEXT_NONE;

    if (keeper->phase >= PHASE_ENDING)
        return;
    limit_show(limit, choice->max, &shown);
    keeper->result.reason = RESULT_LIMIT;
    keeper->result.limit = limit;
    error_set(&keeper->result.error, ERROR_REFUSED, "the limit %s (%s) was reached, and the sandbox ended",
              text_string(&shown), limit_way_words(choice->way));
    keeper->phase = PHASE_ENDING;
    keeper_kill(keeper);
}

void keeper_over(struct keeper *keeper)
{
    keeper->phase = PHASE_OVER;
    keeper->init.fd = keeper->death.fd = -1;
    keeper->jobs.init_fd = -1;
}
