#include "keeper/report.h"

#include "base/array.h"
#include "base/date.h"
#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "keeper/explain.h"
#include "keeper/kept.h"
#include "keeper/live_main.h"
#include "keeper/result.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- JSON --- */

static void add_key(struct text *out, const char *key)
{
    if (out->len > 0 && out->data[out->len - 1] != '{')
        text_add(out, ",");
    text_add_json(out, key);
    text_add(out, ":");
}

static void add_string(struct text *out, const char *key, const char *value)
{
    add_key(out, key);
    if (value)
        text_add_json(out, value);
    else
        text_add(out, "null");
}

static void add_number(struct text *out, const char *key, uint64_t value)
{
    add_key(out, key);
    text_addf(out, "%" PRIu64, value);
}

static void add_flag(struct text *out, const char *key, bool value)
{
    add_key(out, key);
    text_add(out, value ? "true" : "false");
}

static void add_list(struct text *out, const char *key, const char *const *items)
{
    add_key(out, key);
    text_add(out, "[");
    for (size_t i = 0; items && items[i]; i++) {
        text_add(out, i ? "," : "");
        text_add_json(out, items[i]);
    }
    text_add(out, "]");
}

static void add_time(struct text *out, const char *key, struct timespec time)
{
    char date[DATE_SIZE];

    date_write(time, date);
    add_string(out, key, *date ? date : NULL);
}

static void add_usage(struct text *out, const struct result *result)
{
    add_key(out, "usage");
    text_add(out, "{");
    add_number(out, "wall_us", result->wall_us);
    add_number(out, "user_us", result->user_us);
    add_number(out, "system_us", result->system_us);
    add_number(out, "peak_kib", result->peak_kib);
    text_add(out, "}");
}

static void add_phases(struct text *out, const struct phases *phases)
{
    if (!phases)
        return;
    add_key(out, "phases_us");
    text_add(out, "{");
    add_number(out, "planned", phases->planned);
    add_number(out, "cloned", phases->cloned);
    add_number(out, "ready", phases->ready);
    add_number(out, "started", phases->started);
    add_number(out, "exited", phases->exited);
    add_number(out, "empty", phases->empty);
    text_add(out, "}");
}

static void add_result(struct text *out, const struct result *result)
{
    add_number(out, "exit_code", (uint64_t)result->exit_code);
    add_string(out, "reason", result_reason_name(result->reason));
    add_number(out, "signal", (uint64_t)result->signal);
    add_flag(out, "timed_out", result->timed_out);
    add_flag(out, "core", result->core);
    add_string(out, "error", result->error.kind != ERROR_NONE ? result->error.text : NULL);
    add_usage(out, result);
}

static void add_findings(struct text *out, const struct findings *findings)
{
    add_key(out, "findings");
    if (!findings) {
        text_add(out, "null");
        return;
    }
    text_add(out, "[");
    for (size_t i = 0; i < findings->len; i++) {
        const struct finding *finding = &findings->items[i];

        text_add(out, i ? ",{" : "{");
        add_string(out, "how", finding->how);
        add_string(out, "subject", finding->subject);
        add_string(out, "why", finding->why);
        add_string(out, "grant", finding->grant);
        add_number(out, "count", finding->count);
        text_add(out, "}");
    }
    text_add(out, "]");
    add_number(out, "findings_left_out", findings->left_out);
}

static void add_rests(struct text *out, const char *key, const struct live_end *live, enum bring_kind kind)
{
    const char *before = "";

    add_key(out, key);
    text_add(out, "[");
    for (size_t i = 0; i < live->rests.len; i++) {
        const struct bring_rest *rest = &live->rests.items[i];

        if (rest->kind != kind)
            continue;
        text_addf(out, "%s{", before);
        add_string(out, "path", rest->path);
        add_string(out, "why", rest->why);
        text_add(out, "}");
        before = ",";
    }
    text_add(out, "]");
}

static void add_live(struct text *out, const struct live_end *live)
{
    static const struct {
        const char *count, *list;
    } kinds[BRING_KINDS] = { [BRING_WAITS] = { "waiting", "waits" },
                             [BRING_GIT] = { "git", "git_files" },
                             [BRING_CONFLICT] = { "conflicts", "conflict" },
                             [BRING_FAILED] = { "failed", "failure" } };

    if (!live)
        return;
    add_key(out, "live");
    text_add(out, "{");
    add_number(out, "brought", live->brought);
    for (size_t i = 0; i < BRING_KINDS; i++)
        add_number(out, kinds[i].count, live->counts[i]);
    add_flag(out, "slow", live->slow);
    add_string(out, "problem", live->problem.kind != ERROR_NONE ? live->problem.text : NULL);
    for (size_t i = 0; i < BRING_KINDS; i++)
        add_rests(out, kinds[i].list, live, (enum bring_kind)i);
    text_add(out, "}");
}

/* What one does next with a sandbox that is kept. */
static const char *const next_commands[] = { "diff", "apply", "rm" };

static void add_next(struct text *out, const struct report *report)
{
    add_key(out, "next");
    text_add(out, "[");
    for (size_t i = 0; report->kept && i < ARRAY_LEN(next_commands); i++)
        text_addf(out, "%s\"cove %s %s\"", i ? "," : "", next_commands[i], report->id);
    text_add(out, "]");
}

void report_json(const struct report *report, struct text *out)
{
    const struct strings *enforced = report->enforced;

    text_add(out, "{");
    add_string(out, "id", report->id);
    add_string(out, "spec_hash", report->spec_hash);
    add_list(out, "argv", report->argv);
    add_string(out, "workspace", report->workspace);
    add_string(out, "workspace_mode", report->mode);
    add_string(out, "image", report->image);
    add_string(out, "user", report->user);
    add_time(out, "started", report->started);
    add_time(out, "ended", report->ended);
    add_result(out, report->result);
    add_phases(out, report->phases);
    add_string(out, "changes", report->changes);
    add_list(out, "set_aside", report->set_aside ? (const char *const *)report->set_aside->items : NULL);
    add_list(out, "not_set_aside", report->stuck ? (const char *const *)report->stuck->items : NULL);
    add_live(out, report->live);
    add_flag(out, "kept", report->kept);
    add_next(out, report);
    add_list(out, "enforced", enforced ? (const char *const *)enforced->items : NULL);
    add_findings(out, report->findings);
    text_add(out, "}\n");
}

/* --- the file --- */

static int write_all(int fd, const struct text *text)
{
    for (size_t done = 0; done < text->len;) {
        ssize_t put = write(fd, text->data + done, text->len - done);

        if (put < 0 && errno != EINTR)
            return -1;
        done += put > 0 ? (size_t)put : 0;
    }
    return 0;
}

static int write_in_place(const struct text *text, const char *path, struct error *err)
{
    autoclose int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY);

    if (fd < 0 || write_all(fd, text) < 0)
        return error_sys(err, "write the report to %s", path);
    return 0;
}

int report_write(const struct report *report, const char *path, struct error *err)
{
    autotext struct text text = TEXT_NONE;
    struct stat info;

    report_json(report, &text);
    if (strcmp(path, "-") == 0)
        return write_all(STDOUT_FILENO, &text) < 0 ? error_sys(err, "write the report") : 0;
    if (lstat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return write_in_place(&text, path, err);

    autofree char *temporary = text_format("%s.XXXXXX", path);
    autoclose int fd = mkostemp(temporary, O_CLOEXEC); /* with mode 0600 */

    if (fd < 0)
        return error_sys(err, "write the report to %s", path);
    if (write_all(fd, &text) < 0 || rename(temporary, path) < 0) {
        error_sys(err, "write the report to %s", path);
        unlink(temporary);
        return -1;
    }
    return 0;
}

/* --- for people --- */

bool report_wants_colour(int fd)
{
    const char *no_colour = getenv("NO_COLOR");

    return isatty(fd) && !(no_colour && *no_colour);
}

static void add_coloured(struct text *out, bool colour, const char *code, const char *string)
{
    if (colour)
        text_addf(out, "\033[%sm", code);
    text_add_inert(out, string);
    if (colour)
        text_add(out, "\033[0m");
}

static void add_command(struct text *out, const char *const *argv)
{
    enum { COMMAND_MAX = 200 };
    autotext struct text line = TEXT_NONE;

    for (size_t i = 0; argv && argv[i] && line.len <= COMMAND_MAX; i++) {
        text_add(&line, i ? " " : "");
        text_add_bytes(&line, argv[i], strnlen(argv[i], COMMAND_MAX));
    }
    text_add_inert(out, text_string(&line));
}

static void add_seconds(struct text *out, uint64_t us)
{
    if (us < 1000000)
        text_addf(out, "%" PRIu64 ".%" PRIu64 " ms", us / 1000, us / 100 % 10);
    else if (us < 60000000)
        text_addf(out, "%" PRIu64 ".%02" PRIu64 " s", us / 1000000, us / 10000 % 100);
    else
        text_addf(out, "%" PRIu64 " min %" PRIu64 " s", us / 60000000, us / 1000000 % 60);
}

static void add_memory(struct text *out, uint64_t kib)
{
    if (kib < 10240)
        text_addf(out, "%" PRIu64 " KiB", kib);
    else
        text_addf(out, "%" PRIu64 " MiB", kib / 1024);
}

static const char *describe_end(const struct result *result, char *buffer, size_t size)
{
    const char *signal = result->signal ? sigabbrev_np(result->signal) : NULL;

    signal = signal ? signal : "?";
    switch (result->reason) {
    case RESULT_EXITED:
        snprintf(buffer, size, "exit %d", result->exit_code);
        break;
    case RESULT_SIGNALED:
        snprintf(buffer, size, "ended by SIG%s%s", signal, result->core ? " (core dumped)" : "");
        break;
    case RESULT_TIMED_OUT:
        return "time-out: everything was killed";
    case RESULT_INTERRUPTED:
        snprintf(buffer, size, "everything was killed (SIG%s)", signal);
        break;
    case RESULT_NOT_STARTED:
        return "could not be started";
    case RESULT_OUTPUT_LOST:
        return "output was lost";
    case RESULT_FAILED:
        return "the sandbox failed";
    }
    return buffer;
}

static void add_end(struct text *out, const struct result *result, bool colour)
{
    char buffer[64];

    text_add(out, "  ");
    add_coloured(out, colour, result->exit_code == 0 ? "32" : "31",
                 describe_end(result, buffer, sizeof buffer));
    text_add(out, " after ");
    add_seconds(out, result->wall_us);
    text_add(out, " (CPU ");
    add_seconds(out, result->user_us + result->system_us);
    text_add(out, ", peak ");
    add_memory(out, result->peak_kib);
    text_add(out, ")\n");
    if (result->error.kind != ERROR_NONE) {
        text_add(out, "  ");
        text_add_inert(out, result->error.text);
        text_add(out, "\n");
    }
}

static void add_next_lines(struct text *out, const struct report *report)
{
    for (size_t i = 0; report->kept && i < ARRAY_LEN(next_commands); i++)
        text_addf(out, "%scove %s %.*s", i ? ", " : ": ", next_commands[i], KEPT_ID_SHOWN, report->id);
}

void report_summary(const struct report *report, bool colour, struct text *out)
{
    add_coloured(out, colour, "1", "cove");
    text_add(out, ": ");
    add_command(out, report->argv);
    text_add(out, "\n");
    add_end(out, report->result, colour);
    if (report->changes) {
        text_add(out, "  changes ");
        text_add_inert(out, report->changes);
        add_next_lines(out, report);
        text_add(out, "\n");
    }
    if (report->live)
        text_addf(out,
                  "  brought home %" PRIu64 ", wait for consent %" PRIu64 ", conflicts %" PRIu64
                  ", failed %" PRIu64 "\n",
                  report->live->brought, report->live->counts[BRING_WAITS],
                  report->live->counts[BRING_CONFLICT], report->live->counts[BRING_FAILED]);
    if (report->enforced && report->enforced->len > 0) {
        text_add(out, "  protected by");
        for (size_t i = 0; i < report->enforced->len; i++) {
            text_add(out, i ? ", " : " ");
            text_add_inert(out, report->enforced->items[i]);
        }
        text_add(out, "\n");
    }
    if (report->findings)
        report_findings(report->findings, colour, out);
}

void report_findings(const struct findings *findings, bool colour, struct text *out)
{
    text_add(out, findings->len ? "  asked for and not given:\n"
                                : "  no path was hidden and no system call refused that it asked for\n");
    for (size_t i = 0; i < findings->len; i++) {
        const struct finding *finding = &findings->items[i];

        text_addf(out, "    %-5s ", finding->how);
        add_coloured(out, colour, "1", finding->subject);
        text_add(out, ": ");
        text_add_inert(out, finding->why);
        text_addf(out, " (%" PRIu64 " x); ", finding->count);
        text_add_inert(out, finding->grant);
        text_add(out, "\n");
    }
    if (findings->left_out)
        text_addf(out, "    and %" PRIu64 " more\n", findings->left_out);
}
