#pragma once

/* What this host can do for sandboxes, found by trying it.
 *
 * A check is a row of the table in checks.c: a probe that really does what a sandbox would need, in a child of
 * its own, and leaves nothing behind.  No probe needs a right, and none believes a version number where it can
 * try. */

#include "base/error.h"
#include "base/text.h"
#include "box/host.h"
#include "box/plan.h"

#include <stdbool.h>
#include <stddef.h>

enum diagnosis {
    DOCTOR_OK,
    DOCTOR_FALLBACK, /* not there, and something else is used or less is done: `without` says what */
    DOCTOR_ABSENT,   /* not there, and nothing uses it yet, or only what must be asked for */
    DOCTOR_MISSING,  /* `cove run` refuses */
    DOCTOR_UNKNOWN,  /* could not be tried, because something else is missing */
};

const char *diagnosis_name(enum diagnosis diagnosis);

struct finding {
    enum diagnosis diagnosis;
    struct text found; /* what was seen */
    struct text fix;   /* a better one than the row's, if not empty */
};

/* The host under examination. */
struct patient {
    struct host host; /* unless there is a host_error */
    struct ids ids;   /* as a plain run would have them */
    struct error host_error, place_error;
    int scratch;              /* a directory of ours where sandboxes would be, or -1 with a place_error */
    char *scratch_path;       /* its path, from the root */
    int scratch_parent;       /* the directory that it is in */
    const char *scratch_name; /* its last component, in scratch_path */
    char *file_system;        /* that it is on, in words */

    /* Starts a sandbox as `cove run -- true` would, with its state below the scratch directory. */
    int (*start)(const struct patient *patient, struct error *err);
};

struct check {
    const char *name;
    void (*probe)(const struct patient *patient, struct finding *finding);
    const char *without;  /* what does not work if it is not there */
    const char *fix;      /* what to do about it */
    const char *after[2]; /* checks without which this one cannot be tried */
};

extern const struct check checks[];
extern const size_t checks_len;

/* Makes the scratch directory; what cannot be found out is kept in the errors. */
void patient_admit(struct patient *patient);
void patient_release(struct patient *patient);

/* Fills as many findings as there are checks.  True if `cove run` would work. */
bool doctor_examine(const struct patient *patient, struct finding *findings);
void findings_clear(struct finding *findings);
