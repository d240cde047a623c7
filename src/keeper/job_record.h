#pragma once

/* What is written down of a command: two lines of the sandbox's trace, and what it wrote. */

#include <stdbool.h>
#include <stdint.h>

struct error;
struct job;
struct job_as;
struct jobs;
struct record;
struct result;
struct words;

/* Before it is asked for: a command that cannot be recorded is not run. */
int job_record_started(struct job *job, const struct job_as *as, struct error *err);

/* Opens the trace: says that a keeper begins, and finds the number of the last step, for they are numbered
 * through, also over a restart. */
int jobs_record_begin(struct jobs *jobs, const struct record *record, struct error *err);

/* Says how the sandbox ended. */
void jobs_record_end(struct jobs *jobs, const struct record *record, const struct result *result);

void jobs_record_paused(struct jobs *jobs, bool paused);

/* What a step that is over and has no checkpoint changed: `why` there is none; NULL: it changed nothing. */
void job_record_changed(struct jobs *jobs, uint32_t number, const char *why);

/* A step that a program inside says it has begun (keeper/marks.h): its number is then jobs->steps.  Its end:
 * `exit_code` and `signal` count unless the result has failed. */
int job_record_said(struct jobs *jobs, const struct words *words, uint64_t left_out, struct error *err);
void job_record_said_end(struct jobs *jobs, uint32_t number, const struct result *result, const char *reason);

/* When all its output has been passed on. */
void job_record_ended(struct job *job);
