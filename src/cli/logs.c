#include "cli/logs.h"

#include "base/error.h"
#include "base/file.h"
#include "base/own.h"
#include "base/text.h"
#include "cli/point.h"
#include "cli/replay.h"
#include "cli/say.h"
#include "cli/which.h"
#include "keeper/services.h"
#include "spec/read.h"
#include "sys/sys.h"
#include "trace/step.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

const struct option_row options_of_logs[] = {
    { "follow", 'f', NULL, "Go on until the step has ended", OPTION_BOOL,
      offsetof(struct run_options, follow) },
    { "step", 0, "N", "Of step N, not of the last one", OPTION_STRING, offsetof(struct run_options, step) },
    { "service", 0, "NAME", "Of the service NAME, since it was last started", OPTION_STRING,
      offsetof(struct run_options, service) },
    { "timestamps", 't', NULL, "Begin each line with when it was written", OPTION_BOOL,
      offsetof(struct run_options, timestamps) },
    { "json", 0, NULL, "Print one JSON object a line", OPTION_BOOL, offsetof(struct run_options, json) },
    { NULL },
};

enum { SPEC_MAX = 1 << 20 };

/* One step, while it is printed. */
struct log {
    int dir; /* the sandbox's */
    uint64_t step;
    const char *service; /* NULL: it is about a step */
    const char *id;
    bool of_run; /* made by `cove run` */
    struct trace_reader reader;
    struct steps steps;
    struct output_cursor cursor;
    struct replay replay;
};

#define LOG_NONE                                                                                               \
    ((struct log){ .dir = -1, .reader = TRACE_READER_NONE, .steps = STEPS_NONE, .cursor = OUTPUT_CURSOR_NONE })
#define autolog __attribute__((cleanup(log_free)))

static void log_free(struct log *log)
{
    output_cursor_close(&log->cursor);
    trace_reader_close(&log->reader);
    steps_free(&log->steps);
    own_close(&log->dir);
}

/* 0 also if there is no trace at all: then there is no step either. */
static int read_steps(struct log *log, struct error *err)
{
    if (log->reader.fd < 0 && trace_reader_open(log->dir, &log->reader, err) < 0)
        return err->kind == ERROR_MISSING ? 0 : -1;
    return trace_reader_advance(&log->reader, steps_visit, &log->steps, err);
}

static int choose_step(struct log *log, const char *word, struct error *err)
{
    const struct steps *steps = &log->steps;
    bool digits = word && *word && !word[strspn(word, "0123456789")] && strlen(word) < 19;

    if (word && !digits)
        return error_set(err, ERROR_INVALID, "--step %.100s: this is no number of a step", word);
    if (!steps->len && log->of_run)
        return error_set(err, ERROR_MISSING,
                         "sandbox %.*s was made by `cove run`, and what its command wrote is not kept: that of "
                         "cove create and cove exec is",
                         KEPT_ID_SHOWN, log->id);
    if (!word && !steps->len)
        return error_set(err, ERROR_MISSING, "nothing has run in sandbox %.*s yet", KEPT_ID_SHOWN, log->id);
    log->step = word ? strtoull(word, NULL, 10) : steps->items[steps->len - 1].number;
    if (steps_find(steps, log->step))
        return 0;
    error_set(err, ERROR_MISSING, "there is no step %" PRIu64, log->step);
    return error_hint(err, "`cove steps` lists them");
}

static int choose_service(struct log *log, struct error *err)
{
    autofree char *json = file_text(log->dir, STORE_SPEC, SPEC_MAX);
    autospec struct spec spec = SPEC_NONE;

    if (!json)
        return error_sys(err, "read the description of the sandbox");
    if (spec_read_json(json, strlen(json), STORE_SPEC, &spec, err) < 0)
        return -1;

    int at = services_find(&spec.services, log->service);

    if (at < 0) {
        error_set(err, ERROR_MISSING, "this sandbox has no service %.70s", log->service);
        return error_hint(err, "`cove show` lists them");
    }
    log->step = SERVICES_OUTPUT + (uint64_t)at;
    return 0;
}

/* As its keeper has written it down. */
static bool service_runs(const struct log *log)
{
    autorecord struct record record = RECORD_NONE;
    autofree char *ended = text_format("%s=ended", log->service);
    struct error ignored;

    if (record_read(log->dir, log->id, &record, &ignored) < 0)
        return false;
    for (size_t i = 0; i < record.services.len; i++)
        if (text_starts(record.services.items[i], ended))
            return false;
    return true;
}

/* --- following --- */

/* Gives a descriptor that can be read whenever something may be new. */
static int watch(int dir, struct error *err)
{
    autoclose int events = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

    if (events < 0 ||
        inotify_add_watch(events, sys_fd_path(dir).text, IN_MODIFY | IN_CREATE | IN_CLOSE_NOWRITE) < 0)
        return error_sys(err, "watch the directory of the sandbox");
    return steal_fd(&events);
}

/* The directory of output may be made later; to watch it twice is to watch it once. */
static void watch_output(const struct log *log, int events)
{
    if (log->cursor.dir >= 0)
        (void)inotify_add_watch(events, sys_fd_path(log->cursor.dir).text, IN_MODIFY | IN_CREATE);
}

/* The end of a lock is no event that is sure to come, so it is asked for now and then as well. */
static void wait_for_more(int events)
{
    enum { PATIENCE_MS = 1000 };
    struct pollfd poll_events = { .fd = events, .events = POLLIN };
    char buffer[4096];

    (void)poll(&poll_events, 1, PATIENCE_MS);
    while (read(events, buffer, sizeof buffer) > 0)
        ;
}

/* Whether nothing more will come.  Asked before the output is read, so nothing is missed. */
static int is_over(struct log *log, bool *out, struct error *err)
{
    bool held = store_is_held(log->dir);

    if (log->service) {
        *out = !held || !service_runs(log);
        return 0;
    }
    if (read_steps(log, err) < 0)
        return -1;

    const struct step *step = steps_find(&log->steps, log->step);

    *out = !held || !step || step->state != STEP_IS_RUNNING;
    return 0;
}

static int print_new(struct log *log, bool over, struct error *err)
{
    int result =
        (over ? output_cursor_end : output_cursor_advance)(&log->cursor, replay_event, &log->replay, err);

    return result < 0 ? -1 : 0; /* a write that failed is told at the end */
}

static int print_step(struct log *log, bool follow, struct error *err)
{
    autoclose int events = follow ? watch(log->dir, err) : -1;
    bool over;

    if ((follow && events < 0) || is_over(log, &over, err) < 0)
        return -1;
    while (print_new(log, over, err) == 0) {
        if (over || !follow || replay_failed(&log->replay))
            return 0;
        watch_output(log, events);
        wait_for_more(events);
        if (is_over(log, &over, err) < 0)
            break;
    }
    return -1;
}

/* --- the command --- */

static uint64_t more(uint64_t all, uint64_t counted)
{
    return all > counted ? all - counted : 0;
}

/* What was lost behind the last byte that is kept: only the record of the step knows of it. */
static void tell_rest(struct log *log)
{
    const struct step *step = steps_find(&log->steps, log->step);
    struct output_count rest;

    if (!step || step->state != STEP_IS_OVER)
        return;
    rest.bytes[0] = more(step->end.stdout_bytes, log->cursor.counted.bytes[0]);
    rest.bytes[1] = more(step->end.stderr_bytes, log->cursor.counted.bytes[1]);
    if (rest.bytes[0] || rest.bytes[1])
        replay_left_out(&log->replay, &rest);
}

static void warn_of_chain(struct log *log)
{
    autofree char *says = trace_found_says(&log->reader.found);

    if (says)
        say_warning("the record of this sandbox is broken: %s", says);
}

static int print(struct log *log, const struct run_options *options, struct error *err)
{
    if (output_cursor_open(log->dir, log->step, &log->cursor, err) < 0)
        return -1;
    replay_open(&log->replay, options->json, options->timestamps);

    int result = print_step(log, options->follow, err);

    if (result == 0)
        tell_rest(log);
    if (replay_close(&log->replay, err) < 0 || result < 0)
        return -1;
    warn_of_chain(log);
    return 0;
}

int cli_logs(struct options *options, struct error *err)
{
    autowhich struct which which = WHICH_NONE;
    autolog struct log log = LOG_NONE;

    if (options->words.len > 1)
        return error_set(err, ERROR_INVALID, "`cove logs` takes one sandbox; a step of it: cove logs ID@STEP");
    if (point_take_step(options, err) < 0 || which_read(&which, err) < 0)
        return -1;

    const struct kept *kept = which_sandbox(&which, options->words.len ? options->words.items[0] : NULL, err);

    if (!kept)
        return -1;
    log.dir = kept_open(&which.all, kept, err);
    log.service = options->run.service;
    log.id = kept->id;
    log.of_run = kept->state != KEPT_BROKEN && !kept->record.stays;
    if (log.dir < 0 || read_steps(&log, err) < 0)
        return -1;
    if (log.service)
        return choose_service(&log, err) < 0 ? -1 : print(&log, &options->run, err);
    if (choose_step(&log, options->run.step, err) < 0)
        return -1;
    return print(&log, &options->run, err);
}
