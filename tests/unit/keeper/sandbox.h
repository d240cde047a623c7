#pragma once

/* A real sandbox on a scratch directory, for tests that talk to its PID 1 themselves. */

#include "base/text.h"
#include "box/box.h"
#include "box/host.h"
#include "box/plan.h"
#include "init/protocol.h"
#include "store/stack.h"
#include "tests/support/unit_scratch.h"

struct sandbox {
    struct unit_scratch *scratch;
    struct host host;
    struct plan plan;
    struct sandbox_dir dir;
    struct stack_place place;
    struct box box;
    struct text output; /* of the last command, standard error too */
};

/* "root", "user" or "nested": becomes that for the rest of the process.  Gives false if it cannot. */
bool sandbox_become(const char *who);

/* What the next one is to be, if not an ordinary one: `--root`, and the mode of its workspace. */
struct sandbox_wish {
    const char *user;
    enum workspace_mode workspace;
};
extern struct sandbox_wish sandbox_wish;

/* A state directory, a home and a workspace `work`; nothing runs yet. */
int sandbox_setup(void **state);
int sandbox_teardown(void **state);

/* Another one on a layer of this one, in the same state directory; `id_base` as in struct host. */
void sandbox_fork(struct sandbox *sandbox, const char *lid, uint32_t id_base, struct sandbox *out);
void sandbox_fork_end(struct sandbox *fork);

/* Starts it on what its directory says it lies on, and waits until its mounts were read back.  The list of its
 * mounts, which keeps its root busy as long as it is open, is given to `list` if that is not NULL. */
void sandbox_start(struct sandbox *sandbox, int *list);
void sandbox_stop(struct sandbox *sandbox);

/* Gives why it does not start. */
const char *sandbox_cannot_start(struct sandbox *sandbox);

/* Runs a shell command in the workspace, gives its exit code, leaves its output in `output`. */
int sandbox_run(struct sandbox *sandbox, const char *script);

/* The same, checked: fails the test unless it ends with 0 and prints `want`. */
void sandbox_expect(struct sandbox *sandbox, const char *script, const char *want);

/* Starts one and does not wait; gives its pid inside. */
int32_t sandbox_begin(struct sandbox *sandbox, const char *script);
void sandbox_end(struct sandbox *sandbox, int32_t pid);
