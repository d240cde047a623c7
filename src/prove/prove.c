#include "prove/prove.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/own.h"
#include "base/text.h"
#include "box/host.h"
#include "box/place.h"
#include "box/plan.h"
#include "box/tree.h"
#include "init/protocol.h"
#include "prove/prober_program.h"
#include "sys/sys.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

/* No tool has it, and no table of ours lets it in. */
#define VARIABLE "COVE_PROVE_CANARY"
#define PROGRAM "prober"

int proving_set_variable(struct proving *proving, struct error *err)
{
    if (token_make(proving->token, err) < 0)
        return -1;
    return setenv(VARIABLE, proving->token, 1) < 0 ? error_sys(err, "set a variable") : 0;
}

/* The sandbox gets a copy of a file, as of any other that is shown; the host runs the same bytes from memory.
 */
static int put_program(struct proving *proving, struct error *err)
{
    autoclose int file = openat(proving->dir.fd, PROGRAM, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);

    if (file < 0 || fchmod(file, 0755) < 0 ||
        write(file, prober_program, prober_program_size) != (ssize_t)prober_program_size)
        return error_sys(err, "write the prober");
    proving->program = sys_sealed_memfd("cove-prober", prober_program, prober_program_size);
    return proving->program < 0 ? error_sys(err, "make a memfd for the prober") : 0;
}

int proving_begin(struct proving *proving, const struct host *host, struct error *err)
{
    if (store_create(host->state, &proving->dir, err) < 0)
        return -1;
    proving->path = text_format("%s/sandboxes/%s", host->state, proving->dir.id);
    if (put_program(proving, err) < 0)
        return -1;
    if (canaries_make(proving->dir.fd, proving->path, "inside", proving->program, proving->token,
                      &proving->inside.canaries, err) < 0)
        return -1;
    return canaries_make(proving->dir.fd, proving->path, "outside", proving->program, proving->token,
                         &proving->outside.canaries, err);
}

int proving_add_program(const struct proving *proving, struct trees *trees, struct error *err)
{
    autoplace struct place place = PLACE_NONE;

    if (place_open(proving->dir.fd, PROGRAM, &place) < 0)
        return error_sys(err, "open the prober");
    trees_add(trees, &place, PROBER_INSIDE, TREE_RO, TREE_WHY_GRANT);
    return 0;
}

/* What the policy grants is not tried. */
static bool workspace_is_written_through(const struct plan *plan)
{
    return plan->workspace_mode == WORKSPACE_RW || plan->workspace_mode == WORKSPACE_LIVE;
}

/* Where nothing but Landlock keeps the command from it.  PID 1 ignores signals from inside in any case. */
static bool signal_is_only_scoped(const struct plan *plan)
{
    enum { SCOPES = 6 };

    return plan->landlock_abi >= SCOPES &&
           (!(plan->ids.shifted || plan->ids.helpers) || (plan->start_flags & START_ROOT));
}

static void words_inside(const struct proving *proving, const struct plan *plan, struct strings *out)
{
    strings_add(out, PROBER_INSIDE);
    strings_add(out, "try");
    canaries_words(&proving->inside.canaries, VARIABLE, out);
    strings_add(out, "init=1");
    if (signal_is_only_scoped(plan))
        strings_add(out, "signal=1");
    strings_add(out, "devices=/tmp");
    if (!workspace_is_written_through(plan))
        strings_take(out, text_format("work=%s", plan->workspace));
    if (!strings_have(&plan->writable, "/"))
        strings_add(out, "root=");
}

static void words_outside(const struct proving *proving, struct strings *out)
{
    static const char *const places[] = { "work", "root", "devices" };
    const struct canaries *canaries = &proving->outside.canaries;

    strings_add(out, "cove-prober");
    strings_add(out, "try");
    canaries_words(canaries, VARIABLE, out);
    strings_take(out, text_format("init=%d", (int)canaries->stand_in.pid));
    strings_take(out, text_format("signal=%d", (int)canaries->stand_in.pid));
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        strings_take(out, text_format("%s=%s", places[i], canaries->path));
}

static int look_inside(struct proving *proving, const struct host *host, struct plan *plan, struct showing *out,
                       struct error *err)
{
    struct judged judged = { &proving->inside, plan, proving->limits };

    proving->inside.inside = true;
    plan->limits.items[LIMIT_OUTPUT].max = 0; /* what the prober says is for us */
    strings_free(&plan->argv);
    words_inside(proving, plan, &plan->argv);
    if (arm_inside(&proving->inside, host, plan, err) < 0)
        return -1;
    rows_look(&judged, out);
    return arm_end(&proving->inside, err);
}

static int look_outside(struct proving *proving, const struct plan *plan, struct showing *out,
                        struct error *err)
{
    struct judged judged = { &proving->outside, plan, proving->limits };
    autostrings struct strings words = STRINGS_NONE;

    words_outside(proving, &words);
    if (arm_outside(&proving->outside, proving->program, &words, err) < 0)
        return error_while(err, "try on the host");
    rows_look(&judged, out);
    return arm_end(&proving->outside, err);
}

int proving_run(struct proving *proving, const struct host *host, struct plan *plan, struct verdict *verdicts,
                struct error *err)
{
    struct showing *inside = memory_zero(rows_len * sizeof *inside);
    struct showing *outside = memory_zero(rows_len * sizeof *outside);
    int result = look_inside(proving, host, plan, inside, err);

    if (result == 0)
        result = look_outside(proving, plan, outside, err);
    if (result == 0)
        rows_judge(inside, outside, verdicts);
    showings_free(inside);
    showings_free(outside);
    free(inside);
    free(outside);
    return result;
}

void proving_end(struct proving *proving)
{
    struct error ignored;

    arm_free(&proving->inside);
    arm_free(&proving->outside);
    if (proving->program >= 0)
        close(proving->program);
    if (proving->dir.fd >= 0)
        (void)store_remove(&proving->dir, &ignored);
    free(proving->path);
    unsetenv(VARIABLE);
    *proving = PROVING_NONE;
}
