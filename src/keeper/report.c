#include "keeper/report.h"

#include "base/array.h"
#include "base/date.h"
#include "base/delivery.h"
#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "keeper/explain.h"
#include "keeper/kept.h"
#include "keeper/live_main.h"
#include "keeper/outlet.h"
#include "keeper/result.h"
#include "keeper/terminal.h"
#include "limits/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
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

/* A number that nobody counted is null. */
static void add_counted(struct text *out, const char *key, uint64_t value, const char *from)
{
    if (from)
        add_number(out, key, value);
    else
        add_string(out, key, NULL);
}

static void add_usage(struct text *out, const struct result *result)
{
    const struct usage *usage = &result->usage;

    add_key(out, "usage");
    text_add(out, "{");
    add_number(out, "wall_us", result->wall_us);
    add_number(out, "user_us", usage->user_us);
    add_number(out, "system_us", usage->system_us);
    add_string(out, "cpu_from", usage->cpu_from);
    add_number(out, "peak_kib", usage->peak_kib);
    add_string(out, "memory_from", usage->memory_from);
    add_number(out, "written_bytes", usage->written_bytes);
    add_counted(out, "processes", usage->processes, usage->processes_from);
    add_string(out, "processes_from", usage->processes_from);
    text_add(out, "}");
}

/* Whether it was reached: an rlimit answers the program, and nobody else hears of it. */
static void add_reached(struct text *out, const struct result *result, enum limit_id limit, enum limit_way way)
{
    bool silent = way == WAY_RLIMIT || way == WAY_PER_USER || way == WAY_AFFINITY;

    add_key(out, "reached");
    text_add(out, result->reached >> limit & 1 ? "true" : silent ? "null" : "false");
}

static void add_limits(struct text *out, const struct limits *limits, const struct result *result)
{
    add_string(out, "limit", result->reason == RESULT_LIMIT ? limit_name(result->limit) : NULL);
    add_key(out, "limits");
    text_add(out, "{");
    for (size_t i = 0; limits && i < LIMIT_COUNT; i++) {
        const struct limit_choice *choice = &limits->items[i];

        if (!choice->max)
            continue;
        add_key(out, limit_name((enum limit_id)i));
        text_add(out, "{");
        add_number(out, "max", choice->max);
        add_string(out, "kept_by", limit_way_name(choice->way));
        add_flag(out, "hard", limit_way_is_hard(choice->way));
        add_reached(out, result, (enum limit_id)i, choice->way);
        text_add(out, "}");
    }
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

enum { AMOUNTS = 3 };

/* What is bounded of the network, and how far it was used. */
static const struct amount {
    const char *name;
    size_t at;
} amounts[AMOUNTS] = { { "bytes", offsetof(struct amounts, bytes) },
                       { "requests", offsetof(struct amounts, requests) },
                       { "connections", offsetof(struct amounts, connections) } };

static uint64_t amount_of(const struct amounts *all, const struct amount *amount)
{
    return *(const uint64_t *)(const void *)((const char *)all + amount->at);
}

static void add_budget(struct text *out, const struct requests *requests)
{
    add_key(out, "budget");
    text_add(out, "{");
    for (size_t i = 0; requests && i < AMOUNTS; i++) {
        uint64_t most = amount_of(&requests->budget, &amounts[i]);

        if (!most)
            continue;
        add_key(out, amounts[i].name);
        text_add(out, "{");
        add_number(out, "max", most);
        add_number(out, "spent", amount_of(&requests->spent, &amounts[i]));
        text_add(out, "}");
    }
    text_add(out, "}");
}

static void add_requests(struct text *out, const struct report *report)
{
    const struct requests *requests = report->requests;

    add_key(out, "network");
    text_add(out, "{");
    add_string(out, "lacking", report->no_network);
    add_string(out, "record", report->record);
    add_string(out, "replay", report->replay);
    add_string(out, "audit_policy", report->audit_policy);
    add_key(out, "requests");
    text_add(out, "[");
    for (size_t i = 0; requests && i < requests->len; i++) {
        const struct request *request = &requests->items[i];

        text_add(out, i ? ",{" : "{");
        add_string(out, "host", request->host);
        add_number(out, "port", request->port);
        add_string(out, "protocol", gateway_protocol_name(request->protocol));
        add_string(out, "verdict", request_verdict(request));
        add_string(out, "why", request->why);
        add_string(out, "reason", reason_name(request->reason));
        add_string(out, "without_audit",
                   request->reason == REASON_AUDIT ? reason_name(request->without) : NULL);
        add_string(out, "grant", *request->command ? request->command : NULL);
        add_number(out, "count", request->count);
        text_add(out, "}");
    }
    text_add(out, "]");
    add_number(out, "requests_left_out", requests ? requests->others : 0);
    add_number(out, "cached", requests ? requests->cached : 0);
    add_budget(out, requests);
    text_add(out, "}");
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
    add_limits(out, report->limits, report->result);
    add_phases(out, report->phases);
    add_string(out, "changes", report->changes);
    add_list(out, "set_aside", report->set_aside ? (const char *const *)report->set_aside->items : NULL);
    add_list(out, "not_set_aside", report->stuck ? (const char *const *)report->stuck->items : NULL);
    add_live(out, report->live);
    add_flag(out, "kept", report->kept);
    add_next(out, report);
    add_list(out, "enforced", enforced ? (const char *const *)enforced->items : NULL);
    add_requests(out, report);
    add_findings(out, report->findings);
    text_add(out, "}\n");
}

/* --- the file --- */

int report_write(const struct report *report, const struct delivery *place, struct error *err)
{
    autotext struct text text = TEXT_NONE;

    report_json(report, &text);
    return delivery_put(place, text.data, text.len, err) < 0 ? error_while(err, "write the report") : 0;
}

/* --- for people --- */

bool report_wants_colour(int fd)
{
    const char *no_colour = getenv("NO_COLOR");

    return isatty(fd) && !(no_colour && *no_colour);
}

unsigned report_width(int fd)
{
    return terminal_size(fd).ws_col;
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
        autofree char *word = text_format("%.*s", COMMAND_MAX, argv[i]);

        text_add_shell_word(&line, word);
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
    case RESULT_LIMIT:
        snprintf(buffer, size, "limit %s: everything was killed", limit_name(result->limit));
        break;
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

/* Of the lines that we make ourselves, one of them from `begin` on: it goes on in the next, deeper, behind the
 * last comma that fits.  Not those with a command to copy at their end, nor those with words from inside. */
static void fold(const struct report *report, struct text *out, size_t begin)
{
    autotext struct text line = TEXT_NONE;
    size_t column = 0;

    if (!report->width || out->len - begin <= report->width)
        return;
    text_add(&line, text_string(out) + begin);
    text_cut(out, begin);
    for (const char *at = text_string(&line); *at;) {
        const char *comma = strstr(at, ", ");
        size_t len = comma ? (size_t)(comma + 1 - at) : strlen(at);

        if (column && column + len > report->width) {
            text_add(out, "\n   ");
            column = 3;
        }
        text_add_bytes(out, at, len);
        column += len;
        at += len;
    }
}

/* An error is not told here: it is the last thing that is said of a run, with or without this. */
static void add_end(struct text *out, const struct report *report, bool colour)
{
    const struct result *result = report->result;
    const struct usage *usage = &result->usage;
    char buffer[64];
    size_t begin = out->len;

    text_add(out, "  ");
    add_coloured(out, colour, result->exit_code == 0 ? "32" : "31",
                 describe_end(result, buffer, sizeof buffer));
    text_add(out, " after ");
    add_seconds(out, result->wall_us);
    text_add(out, " (CPU ");
    add_seconds(out, usage->user_us + usage->system_us);
    text_add(out, ", peak ");
    add_memory(out, usage->peak_kib);
    if (usage->written_bytes) {
        text_add(out, ", written ");
        add_memory(out, usage->written_bytes / 1024);
    }
    if (usage->processes_from)
        text_addf(out, ", processes %" PRIu64, usage->processes);
    text_add(out, ")");
    fold(report, out, begin);
    text_add(out, "\n");
}

/* The usual ones, that nobody asked for, are not worth a line. */
static void add_limit_line(struct text *out, const struct report *report)
{
    const char *between = "  limits ";
    size_t begin = out->len;

    for (size_t i = 0; report->limits && i < LIMIT_COUNT; i++) {
        const struct limit_choice *choice = &report->limits->items[i];
        bool reached = report->result->reached >> i & 1;

        if (!choice->max || (i == LIMIT_PROCESSES && choice->max == LIMIT_PROCESSES_USUAL && !reached))
            continue;
        text_add(out, between);
        limit_show((enum limit_id)i, choice->max, out);
        text_addf(out, " (%s%s)", limit_way_words(choice->way), reached ? ", REACHED" : "");
        between = ", ";
    }
    if (*between != ',')
        return;
    fold(report, out, begin);
    text_add(out, "\n");
}

static void add_next_lines(struct text *out, const struct report *report)
{
    for (size_t i = 0; report->kept && i < ARRAY_LEN(next_commands); i++)
        text_addf(out, "%scove %s %.*s", i ? ", " : ": ", next_commands[i],
                  report->name ? INT_MAX : KEPT_ID_SHOWN, report->name ? report->name : report->id);
}

static void add_spent(struct text *out, const struct requests *requests)
{
    for (size_t i = 0; requests && i < AMOUNTS; i++) {
        uint64_t most = amount_of(&requests->budget, &amounts[i]);

        if (most && amount_of(&requests->spent, &amounts[i]) >= most)
            text_addf(out, "  the network's budget of %" PRIu64 " %s is spent\n", most, amounts[i].name);
    }
}

static bool was_refused(const struct request *request)
{
    return !request->allowed;
}

static bool has_failed(const struct request *request)
{
    return request->failed;
}

static bool was_audited(const struct request *request)
{
    return request->allowed && !request->failed && request->reason == REASON_AUDIT;
}

/* Those that are meant, with what would allow them; how many there are. */
static size_t add_request_lines(struct text *out, const struct requests *requests, const char *title,
                                bool (*meant)(const struct request *), bool colour)
{
    enum { LINES_MAX = 10 };
    size_t lines = 0;

    for (size_t i = 0; requests && i < requests->len; i++) {
        const struct request *request = &requests->items[i];

        if (!meant(request) || lines++ >= LINES_MAX)
            continue;
        text_addf(out, "%s    ", lines == 1 ? title : "");
        add_coloured(out, colour, "1", request->why);
        text_addf(out, " (%" PRIu64 " x)%s", request->count, *request->command ? "; to allow it: " : "");
        text_add_inert(out, request->command);
        text_add(out, "\n");
    }
    if (lines > LINES_MAX)
        text_addf(out, "    and %zu more\n", lines - LINES_MAX);
    return lines;
}

static void add_refused(struct text *out, const struct report *report, bool colour)
{
    (void)add_request_lines(out, report->requests, "  refused:\n", was_refused, colour);
    (void)add_request_lines(out, report->requests, "  allowed, and failed:\n", has_failed, colour);
    if (report->no_network)
        text_add(out,
                 "  no network at all, not even explained refusals: nftables is missing (`cove doctor`)\n");
}

void report_audit(const struct report *report, bool colour, struct text *out)
{
    if (!report->audit)
        return;
    if (!add_request_lines(out, report->requests, "  let through by the audit, and refused without it:\n",
                           was_audited, colour))
        text_add(out, "  the audit let nothing through that the rules would have refused\n");
    if (!report->audit_policy)
        return;
    text_add(out, "  the policy that allows it: ");
    text_add_inert(out, report->audit_policy);
    text_add(out, "\n");
}

static void add_tapes(struct text *out, const struct report *report)
{
    const char *file = report->record ? report->record : report->replay;

    if (!file)
        return;
    text_add(out, report->record ? "  exchanges were recorded to " : "  exchanges were served from ");
    text_add_inert(out, file);
    text_add(out, report->record ? ": TLS to allowed hosts was looked into for that\n" : ": nothing left\n");
}

static void add_changes(struct text *out, const struct report *report)
{
    size_t begin = out->len;

    if (!report->changes)
        return;
    text_add(out, "  changes ");
    text_add_inert(out, report->changes);
    add_next_lines(out, report);
    fold(report, out, begin);
    text_add(out, "\n");
}

static void add_protections(struct text *out, const struct report *report)
{
    size_t begin = out->len;

    if (!report->enforced || !report->enforced->len)
        return;
    text_add(out, "  protected by");
    for (size_t i = 0; i < report->enforced->len; i++) {
        text_add(out, i ? ", " : " ");
        text_add_inert(out, report->enforced->items[i]);
    }
    fold(report, out, begin);
    text_add(out, "\n");
}

void report_summary(const struct report *report, bool colour, struct text *out)
{
    add_coloured(out, colour, "1", "cove");
    text_add(out, ": ");
    add_command(out, report->argv);
    text_add(out, "\n");
    add_end(out, report, colour);
    add_limit_line(out, report);
    add_changes(out, report);
    if (report->live)
        text_addf(out,
                  "  brought home %" PRIu64 ", wait for consent %" PRIu64 ", conflicts %" PRIu64
                  ", failed %" PRIu64 "\n",
                  report->live->brought, report->live->counts[BRING_WAITS],
                  report->live->counts[BRING_CONFLICT], report->live->counts[BRING_FAILED]);
    add_protections(out, report);
    add_tapes(out, report);
    add_spent(out, report->requests);
    if (report->requests && report->requests->cached)
        text_addf(out, "  package files that came from the cache: %" PRIu64 "\n", report->requests->cached);
    report_audit(report, colour, out);
    report_explained(report, colour, out);
}

static void list_findings(struct text *out, const struct findings *findings, bool colour)
{
    if (findings->len)
        text_add(out, "  asked for and not given:\n");
    for (size_t i = 0; i < findings->len; i++) {
        const struct finding *finding = &findings->items[i];

        text_addf(out, "    %-7s ", finding->how);
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

void report_explained(const struct report *report, bool colour, struct text *out)
{
    size_t before = out->len;

    add_refused(out, report, colour);
    if (report->findings)
        list_findings(out, report->findings, colour);
    if (report->findings && out->len == before)
        text_add(out, "  no path, address or system call that it asked for was refused\n");
}
