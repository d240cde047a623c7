#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <sys/stat.h>
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

/* What the last operation said. */
extern struct error session_error;

#define assert_works(call)                                                                                     \
    do {                                                                                                       \
        if ((call) != 0)                                                                                       \
            fail_msg("%s: %s", #call, session_error.text);                                                     \
    } while (0)

#define assert_fails_with(number, call)                                                                        \
    do {                                                                                                       \
        assert_int_equal(call, -1);                                                                            \
        if (session_error.sys_errno != (number))                                                               \
            fail_msg("%s: %s", #call, session_error.text);                                                     \
    } while (0)

/* Of what must be there; a link is not followed. */
struct stat session_look(int dir, const char *name);
bool session_has(int dir, const char *name);

int session_setup(void **state);
int session_teardown(void **state);

/* The same with `liar` in the place of the program: it has our side's other ends. */
struct files *session_with_liar(void (*liar)(int in, int out, const void *what), const void *what,
                                pid_t *out_pid);
