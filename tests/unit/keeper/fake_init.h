#pragma once

struct box;

/* What the stand-in for PID 1 does besides, or instead of, its work. */
enum fake {
    FAKE_HONEST,
    FAKE_NOT_FOUND,    /* FAILED with 127 */
    FAKE_SETUP_FAILED, /* FAILED from init, before READY */
    FAKE_DIES,         /* it is gone in the middle of the run */
    FAKE_DEAF,         /* does not react to END: must be killed */
    FAKE_UNKNOWN_KIND, /* from here on: violations of the protocol */
    FAKE_SHORT,
    FAKE_TWICE_STARTED,
    FAKE_OTHER_PID,
    FAKE_BAD_STATUS,
    FAKE_DESCRIPTORS,
    FAKE_MANY_DESCRIPTORS,
    FAKE_LISTENER,
    FAKE_NO_TERMINAL, /* with a tty: something else than a pty */
    FAKE_END,
};

/* Forks it.  Commands run unconfined, as the user of the test. */
void fake_start(enum fake fake, struct box *out);
