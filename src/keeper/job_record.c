#include "keeper/job_record.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "keeper/job.h"
#include "keeper/record.h"
#include "limits/limits.h"
#include "spec/node.h"
#include "trace/step.h"
#include "trace/trace.h"

#include <string.h>

static int add_state(struct jobs *jobs, const char *kind, const struct record *record, const char *reason,
                     struct error *err)
{
    autonode struct node data = { .kind = NODE_MAP };

    node_add(&data, "id", NODE_STRING, record->id);
    node_add(&data, "spec", NODE_STRING, record->spec_hash);
    if (reason)
        node_add(&data, "reason", NODE_STRING, reason);
    return trace_add(jobs->trace, kind, &data, err);
}

int jobs_record_begin(struct jobs *jobs, const struct record *record, struct error *err)
{
    autosteps struct steps before = STEPS_NONE;

    /* Whoever cannot read how far it was would give numbers that there are already. */
    if (steps_read(jobs->dir, false, &before, err) < 0 && err->kind != ERROR_MISSING)
        return -1;
    if (before.len)
        jobs->steps = (uint32_t)before.items[before.len - 1].number;
    if (trace_open(jobs->dir, jobs->trace, err) < 0)
        return -1;
    return add_state(jobs, STEP_KEEPER, record, NULL, err);
}

void jobs_record_end(struct jobs *jobs, const struct record *record, const struct result *result)
{
    struct error ignored;

    (void)add_state(jobs, "sandbox.stopped", record, result_reason_name(result->reason), &ignored);
}

void jobs_record_paused(struct jobs *jobs, bool paused)
{
    struct error ignored;

    (void)trace_add(jobs->trace, paused ? "sandbox.paused" : "sandbox.resumed", NULL, &ignored);
}

static void add_names(struct step *step, const struct strings *variables)
{
    for (size_t i = 0; i < variables->len; i++) {
        autofree char *name = text_format("%.*s", (int)strcspn(variables->items[i], "="), variables->items[i]);

        step_add_variable(step, name);
    }
}

int job_record_started(struct job *job, const struct job_as *as, struct error *err)
{
    autostep struct step step = STEP_NONE;

    step.number = job->step;
    step.cwd = text_copy(job->words.cwd);
    step.user = text_format("%u:%u", as->uid, as->gid);
    step.kind = job->copies ? text_copy("cp") : NULL;
    step.detached = job->detached;
    step.tty = job->tty;
    step_set_argv(&step, job->words.argv.items);
    add_names(&step, &job->words.envp);
    if (!job->copies && output_open(job->jobs->dir, job->step, &job->log, err) < 0)
        return -1;
    return step_write_started(job->jobs->trace, &step, err);
}

static void set_output(struct step_end *end, struct output *log)
{
    struct output_count kept = output_kept(log);

    end->stdout_bytes = log->seen.bytes[0];
    end->stderr_bytes = log->seen.bytes[1];
    end->stdout_kept = kept.bytes[0];
    end->stderr_kept = kept.bytes[1];
}

static void set_end(struct step_end *end, const struct result *result)
{
    const struct usage *usage = &result->usage;

    end->exit = (uint64_t)result->exit_code;
    if (result->signal)
        end->signal = (uint64_t)result->signal;
    end->reason = text_copy(result_reason_name(result->reason));
    if (result->reason == RESULT_LIMIT)
        end->limit = text_copy(limit_name(result->limit));
    end->wall_us = result->wall_us;
    if (!usage->cpu_from)
        return;
    end->user_us = usage->user_us;
    end->system_us = usage->system_us;
    end->peak_kib = usage->peak_kib;
}

/* That it ran is on record already; that its end is not, says the next record of the keeper. */
void job_record_ended(struct job *job)
{
    autostep struct step step = STEP_NONE;
    struct error ignored;

    if (job->recorded)
        return;
    job->recorded = true;
    step.number = job->step;
    set_end(&step.end, &job->result);
    set_output(&step.end, &job->log);
    (void)output_close(&job->log, &ignored);
    (void)step_write_ended(job->jobs->trace, &step, &ignored);
    *array_add(&job->jobs->over) = job->step;
}

int job_record_said(struct jobs *jobs, const struct words *words, uint64_t left_out, struct error *err)
{
    autostep struct step step = STEP_NONE;

    step.number = jobs->steps + 1;
    step.inside = true;
    step.cwd = text_copy(words->cwd);
    step_set_argv(&step, words->argv.items);
    step.argv_left_out += left_out < UINT32_MAX ? left_out : UINT32_MAX; /* a number of JSON has 53 bits */
    if (step_write_started(jobs->trace, &step, err) < 0)
        return -1;
    jobs->steps++;
    return 0;
}

void job_record_said_end(struct jobs *jobs, uint32_t number, const struct result *result, const char *reason)
{
    autostep struct step step = STEP_NONE;
    struct error ignored;

    step.number = number;
    if (result->reason != RESULT_FAILED)
        step.end.exit = (uint64_t)result->exit_code;
    if (result->signal)
        step.end.signal = (uint64_t)result->signal;
    step.end.reason = text_copy(reason);
    step.end.wall_us = result->wall_us;
    (void)step_write_ended(jobs->trace, &step, &ignored);
    *array_add(&jobs->over) = number;
}

/* Nobody counts files that are still written to. */
void job_record_changed(struct jobs *jobs, uint32_t number, const char *why)
{
    autostep struct step step = STEP_NONE;
    struct error ignored;

    step.number = number;
    if (why)
        step.end.added = step.end.changed = step.end.removed = MEMBER_NO_NUMBER;
    step.end.no_checkpoint = why ? text_copy(why) : NULL;
    (void)step_write_changed(jobs->trace, &step, &ignored);
}
