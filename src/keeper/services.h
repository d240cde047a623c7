#pragma once

/* The services of a sandbox that stays (spec/services.h): started one after the other, each when the one before
 * is ready; again whenever everything inside was ended by a rollback. */

#include "base/error.h"
#include "spec/services.h"

#include <stdbool.h>
#include <stdint.h>

struct keeper;

enum service_state {
    SERVICE_WAITING,   /* not started */
    SERVICE_STARTING,  /* it runs, and is not ready yet */
    SERVICE_READY,     /* it was ready, and runs */
    SERVICE_NOT_READY, /* it runs, and was not ready in time */
    SERVICE_ENDED,     /* by itself, or could not be started: `how` */
    SERVICE_STOPPED,   /* with everything else inside */
};

struct service_run {
    struct keeper *keeper;
    enum service_state state;
    char how[64];
    uint32_t job, probe; /* numbers of the commands that run; 0: none does */
};

struct services_run {
    const struct services *list; /* borrowed; NULL: there are none */
    struct service_run runs[SERVICES_MAX];
    bool under_way;             /* they are being started */
    size_t at;                  /* the one that is waited for */
    uint64_t began, by, try_at; /* in microseconds: of that one, as long as under_way */
    uint64_t looked;            /* when it was last tended */
    struct error failed;        /* why the last start came to nothing; ERROR_NONE: it did not */
};

/* What is kept of the output of service `at` has this number (store/output.h). */
enum { SERVICES_OUTPUT = 0x7fff0000 };

/* Enters them into the record, which the guard gets a copy of. */
void services_begin(struct keeper *keeper);

/* Starts them, if there are any.  False: there are none. */
bool services_start(struct keeper *keeper);

/* Everything inside is being ended, and they with it. */
void services_stop(struct keeper *keeper);

/* Looks after the one that is waited for.  Gives the milliseconds until there is more to do, -1 for never. When
 * all are ready, or one is not, keeper_served() is called once. */
int services_tend(struct keeper *keeper);

/* No command is run meanwhile. */
bool services_under_way(const struct keeper *keeper);
