/* A pause of a sandbox that stays.
 *
 * By the kernel where there is a group that it can freeze; PID 1 is among the frozen then, and nobody inside
 * can undo it.  Else PID 1 stops everybody by signals, and says when they are: until then we are about to
 * pause. */

#include "keeper/stay_inner.h"

#include "base/clock.h"
#include "base/error.h"
#include "box/box.h"
#include "init/wire.h"
#include "keeper/job_record.h"
#include "keeper/record.h"
#include "keeper/stay.h"

static void set_paused(struct keeper *keeper, bool paused)
{
    struct record *record = keeper->stay->record;
    struct error ignored;

    keeper->pausing = false;
    keeper->paused = record->paused = paused;
    jobs_record_paused(&keeper->jobs, paused);
    (void)record_write(keeper->stay->dir->fd, record, &ignored);
    jobs_pause(&keeper->jobs, paused);
    keeper->active = clock_us();
    if (paused)
        visitors_paused(keeper, NULL);
}

int keeper_pause(struct keeper *keeper, struct error *err)
{
    struct message message = { .kind = MESSAGE_PAUSE };

    if (keeper->paused || keeper->pausing)
        return 0;
    if (freezer_set(&keeper->box->freezer, true)) {
        keeper->frozen = true;
        set_paused(keeper, true);
        return 0;
    }
    if (wire_send(keeper->init.fd, &message, NULL, 0) < 0)
        return error_sys(err, "ask PID 1 to stop every process");
    keeper->pausing = true;
    return 0;
}

void keeper_heard_paused(struct keeper *keeper, int status)
{
    struct error err;

    if (status == 0) {
        set_paused(keeper, true);
        return;
    }
    keeper->pausing = false;
    keeper->active = clock_us();
    error_set(&err, ERROR_SYSTEM, "some processes of this sandbox could not be stopped, and all go on");
    visitors_paused(keeper, &err);
}

void keeper_resume(struct keeper *keeper)
{
    struct message message = { .kind = MESSAGE_RESUME };
    struct error err;

    if (!keeper->paused && !keeper->pausing)
        return;
    if (keeper->frozen)
        (void)freezer_set(&keeper->box->freezer, false);
    else
        (void)wire_send(keeper->init.fd, &message, NULL, 0);
    keeper->frozen = false;
    if (keeper->pausing) {
        keeper->pausing = false;
        error_set(&err, ERROR_REFUSED, "this sandbox is being stopped");
        visitors_paused(keeper, &err);
    } else {
        set_paused(keeper, false);
    }
}
