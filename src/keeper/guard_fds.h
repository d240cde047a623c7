#pragma once

/* Where a guard has its descriptors, before it sleeps, while it does and when it has woken up.  Of the
 * sleeper's program too, which has no other header of ours. */

enum {
    GUARD_PIDFD, /* of PID 1 */
    GUARD_PARENT,
    GUARD_DIR,
    GUARD_VERDICT, /* may be closed, and so may */
    GUARD_USERS,
    GUARD_IMAGE, /* our own program, only while it sleeps */
    GUARD_FDS = GUARD_IMAGE,
};

#define GUARD_NAME "cove-guard"
#define GUARD_HEEDS_VERDICT "verdict" /* a word for the sleeper: not only the end of PID 1 wakes it */
