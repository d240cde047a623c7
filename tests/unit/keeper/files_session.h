#pragma once

#include <sys/types.h>

struct files;

/* A session with cove-files as a plain process in the directory `in` of a scratch directory: an ordinary user
 * if we are root.  Its path is set by the test's main(). */
struct session {
    struct files *files;
    pid_t pid;
    int in, out; /* both directories; `out` is ours */
    struct unit_scratch *scratch;
};

extern const char *session_program;

int session_setup(void **state);
int session_teardown(void **state);

/* The same with `liar` in the place of the program: it has our side's other ends. */
struct files *session_with_liar(void (*liar)(int in, int out, const void *what), const void *what,
                                pid_t *out_pid);
