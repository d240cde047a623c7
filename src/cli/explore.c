#include "cli/explore.h"

#include "base/array.h"
#include "base/error.h"
#include "base/file.h"
#include "base/own.h"
#include "base/sha256.h"
#include "base/text.h"
#include "cli/exploring.h"
#include "cli/forking.h"
#include "cli/ranked.h"
#include "cli/say.h"
#include "cli/staying.h"
#include "cli/which.h"
#include "explore/ranking.h"
#include "explore/tasks.h"
#include "keeper/keep.h"
#include "keeper/result.h"
#include "keeper/snapshots.h"
#include "spec/fields.h"
#include "spec/forms.h"
#include "spec/node.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define AT(member) offsetof(struct run_options, member)

enum { COUNT_MAX = 10000, JOBS_MAX = 256, RETRIES_MAX = 100, SCORE_TIMEOUT_MS = 10 * 60 * 1000 };

const struct option_row options_of_explore[] = {
    { "count", 'n', "N", "Make so many tries, of each task with --each (1)", OPTION_STRING, AT(count) },
    { "jobs", 'j', "N", "Run at most so many at once; otherwise one for each processor", OPTION_STRING,
      AT(jobs) },
    { "each", 0, "FILE", "Take a task from each line of FILE, a JSON object a line", OPTION_STRING, AT(each) },
    { "score", 0, "COMMAND", "Judge each try by this, run by sh -c in a fork of what it left", OPTION_STRING,
      AT(score) },
    { "score-files", 0, "PATH|[SRC]:DST",
      "Lay PATH of the host's workspace over the fork, read-only; or SRC, or nothing, at DST; may be given "
      "again",
      OPTION_LIST, AT(score_files) },
    { "score-timeout", 0, "TIME", "End the score command after this time (10m)", OPTION_STRING,
      AT(score_timeout) },
    { "timeout", 0, "TIME", "End each try after this time (30s, 5m)", OPTION_STRING, AT(timeout) },
    { "retries", 0, "N", "Begin a try again, so often, if its exit code is not 0 (0)", OPTION_STRING,
      AT(retries) },
    { "keep", 0, "winner|all|none",
      "Which sandboxes stay: the best one (of each task), all, or none; with --each "
      "none, otherwise winner",
      OPTION_STRING, AT(keep) },
    { "name", 0, "NAME", "Name the winner so; those of tasks are NAME-1, NAME-2 ...", OPTION_STRING, AT(name) },
    { "results", 0, "FILE", "Write a JSON line for each try to FILE; if it has some, go on with the others",
      OPTION_STRING, AT(results) },
    { "diffs", 0, "DIR", "Write what each try changed to DIR/TRY.patch, or DIR/TASK-TRY.patch", OPTION_STRING,
      AT(diffs) },
    { "env", 'e', "KEY[=VALUE]", "Set a variable; without a value, that of the host; may be given again",
      OPTION_LIST, AT(env) },
    { "json", 0, NULL, "Print JSON", OPTION_BOOL, AT(json) },
    { "quiet", 'q', NULL, "Show no progress", OPTION_BOOL, AT(quiet) },
    { NULL },
};

/* All that one `cove explore` has. */
struct explore {
    const struct run_options *options;
    struct exploring exploring;
    const char *from; /* as it was said; NULL: not */
    struct strings argv, env;
    struct scorefiles files;
    struct forking forking;
    char *state;
    char *snapshot; /* of our own making, and what is forked */
    char *results_path;
    bool results_ours; /* they go with us */
    char digest[SHA256_TEXT];
};

static void explore_free(struct explore *explore)
{
    struct exploring *exploring = &explore->exploring;

    strings_free(&explore->argv);
    strings_free(&explore->env);
    scorefiles_free(&explore->files);
    forking_free(&explore->forking);
    free(explore->state);
    free(explore->snapshot);
    free(explore->results_path);
    strings_free(&exploring->tasks);
    results_free(&exploring->results);
    free(exploring->label);
    own_close(&exploring->results_fd);
    own_close(&exploring->signals);
}

/* --- what was asked for --- */

/* Words before `--` are FROM, those behind it the command. */
static int read_words(const struct options *options, struct explore *out, struct error *err)
{
    int at = 1;

    while (at < options->argc && strcmp(options->argv[at], "--") != 0)
        at++;

    size_t behind = at < options->argc ? (size_t)(options->argc - at - 1) : 0,
           before = options->words.len - behind;

    if (!behind) {
        error_set(err, ERROR_INVALID, "`cove explore` needs a command");
        return error_hint(err, "cove explore -n 3 FROM -- COMMAND");
    }
    if (before > 1)
        return error_set(err, ERROR_INVALID,
                         "`cove explore` takes one sandbox or snapshot before --; a step of one is ID@STEP");
    out->from = before ? options->words.items[0] : NULL;
    for (size_t i = before; i < options->words.len; i++)
        strings_add(&out->argv, options->words.items[i]);
    return 0;
}

static int read_number(const char *name, const char *text, uint64_t least, uint64_t most, uint64_t *out,
                       struct error *err)
{
    uint64_t number;

    if (!text)
        return 0;
    number = strtoull(text, NULL, 10);
    if (!*text || strlen(text) > 9 || text[strspn(text, "0123456789")] || number < least || number > most)
        return error_set(err, ERROR_INVALID, "--%s %.20s: must be %llu to %llu", name, text,
                         (unsigned long long)least, (unsigned long long)most);
    *out = number;
    return 0;
}

static int read_keep(const struct run_options *options, struct exploring *out, struct error *err)
{
    static const char *const names[] = { [KEEP_WINNER] = "winner", [KEEP_ALL] = "all", [KEEP_NONE] = "none" };

    out->keep = options->each ? KEEP_NONE : KEEP_WINNER;
    for (size_t i = 0; options->keep && i < ARRAY_LEN(names); i++)
        if (strcmp(options->keep, names[i]) == 0) {
            out->keep = (enum explore_keep)i;
            return 0;
        }
    return options->keep
               ? error_set(err, ERROR_INVALID, "--keep %.40s: must be winner, all or none", options->keep)
               : 0;
}

static void read_env(const struct run_options *options, struct strings *out)
{
    for (size_t i = 0; i < options->env.len; i++) {
        const char *entry = options->env.items[i], *value = strchr(entry, '=') ? NULL : getenv(entry);

        if (strchr(entry, '='))
            strings_add(out, entry);
        else if (value)
            strings_take(out, text_format("%s=%s", entry, value));
    }
}

static int read_tasks(const char *path, struct strings *out, struct error *err)
{
    autofree char *text = file_text(AT_FDCWD, path, TASKS_BYTES_MAX);

    if (!text)
        return error_sys(err, "read %.200s", path);
    return tasks_read(text, strlen(text), path, out, err);
}

static int read_options(struct explore *explore, struct error *err)
{
    const struct run_options *options = explore->options;
    struct exploring *exploring = &explore->exploring;
    struct trying *trying = &exploring->trying;
    uint64_t jobs = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);

    exploring->count = 1;
    trying->score = options->score;
    trying->score_timeout_ms = SCORE_TIMEOUT_MS;
    if (options->score_files.len && !options->score)
        return error_set(err, ERROR_INVALID, "--score-files is for --score, which is not there");
    if (options->name && !record_is_name(options->name))
        return error_set(err, ERROR_INVALID, "--name %.70s: is no name of a sandbox", options->name);
    if (read_number("count", options->count, 1, COUNT_MAX, &exploring->count, err) < 0 ||
        read_number("jobs", options->jobs, 1, JOBS_MAX, &jobs, err) < 0 ||
        read_number("retries", options->retries, 0, RETRIES_MAX, &exploring->retries, err) < 0 ||
        read_keep(options, exploring, err) < 0)
        return -1;
    if (options->timeout && options_duration("timeout", options->timeout, &trying->timeout_ms, err) < 0)
        return -1;
    if (options->score_timeout &&
        options_duration("score-timeout", options->score_timeout, &trying->score_timeout_ms, err) < 0)
        return -1;
    trying->diffs = options->diffs;
    if (options->diffs && mkdir(options->diffs, 0777) < 0 && errno != EEXIST)
        return error_sys(err, "make %.200s", options->diffs);
    if (options->each && read_tasks(options->each, &exploring->tasks, err) < 0)
        return -1;
    exploring->jobs = jobs < JOBS_MAX ? (size_t)jobs : JOBS_MAX;
    exploring->progress = !options->quiet && !options->json && isatty(STDERR_FILENO);
    read_env(options, &explore->env);
    return 0;
}

/* Results of another command, score or list of tasks have nothing to do with ours. */
static void add_words(struct sha256 *sha256, const struct strings *words)
{
    for (size_t i = 0; i < words->len; i++)
        sha256_add(sha256, words->items[i], strlen(words->items[i]) + 1);
    sha256_add(sha256, "", 1);
}

static void set_digest(struct explore *explore)
{
    struct sha256 *sha256 = sha256_new();
    const char *score = explore->options->score ? explore->options->score : "";
    unsigned char digest[SHA256_BYTES];

    add_words(sha256, &explore->argv);
    add_words(sha256, &explore->exploring.tasks);
    add_words(sha256, &explore->options->score_files);
    sha256_add(sha256, score, strlen(score));
    sha256_end(sha256, digest);
    sha256_text(digest, explore->digest);
}

/* The bound on memory that each try has, as its spec says. */
static uint64_t memory_limit(const char *spec)
{
    autonode struct node root = NODE_NONE;
    autotext struct text why = TEXT_NONE;
    struct error ignored;
    uint64_t bytes = 0;

    if (node_read_json(spec, strlen(spec), STORE_SPEC, &root, &ignored) < 0)
        return 0;

    const struct node *limits = root.kind == NODE_MAP ? node_get(&root, "limits") : NULL,
                      *node = limits && limits->kind == NODE_MAP ? node_get(limits, "memory") : NULL;

    if (node && node->kind == NODE_MAP)
        node = node_get(node, "max");
    if (node && node->kind == NODE_STRING && form_amount(TYPE_BYTES, node->text, &bytes, &why))
        return bytes / 1024;
    return 0;
}

/* --- the state that is forked --- */

static int hold(struct explore *explore, const char *run, struct error *err)
{
    explore->snapshot = text_format("explore-%s", run);
    if (forking_hold(explore->from, explore->snapshot, err) < 0) {
        free(explore->snapshot);
        explore->snapshot = NULL;
        return -1;
    }
    return 0;
}

static void let_go(struct explore *explore)
{
    struct error err;

    if (explore->snapshot && snapshot_remove(explore->state, explore->snapshot, &err) < 0 &&
        err.kind != ERROR_MISSING)
        say_error(&err);
}

/* Nobody wants to hear of it when all is done. */
static int check_name(const char *name, struct error *err)
{
    autowhich struct which which = WHICH_NONE;

    if (which_read(&which, err) < 0)
        return -1;
    for (size_t i = 0; name && i < which.all.len; i++)
        if (which.all.items[i].record.name && strcmp(which.all.items[i].record.name, name) == 0)
            return error_set(err, ERROR_INVALID, "--name %s: sandbox %.*s has it already", name, KEPT_ID_SHOWN,
                             which.all.items[i].id);
    return 0;
}

static int begin_run(struct explore *explore, struct error *err)
{
    struct exploring *exploring = &explore->exploring;
    char run[ID_LENGTH + 1];

    if (store_new_id(run, err) < 0 || check_name(explore->options->name, err) < 0)
        return -1;
    exploring->results.about =
        (struct results_about){ text_copy(run), text_copy(explore->forking.layer), text_copy(explore->digest) };
    /* The line first: whoever finds the file knows what to remove. */
    if (results_begin(exploring->results_fd, &exploring->results.about, err) < 0)
        return -1;
    return hold(explore, run, err);
}

/* Goes on after somebody who was killed, or stopped: from the same state, or not at all. */
static int take_up_run(struct explore *explore, struct error *err)
{
    struct exploring *exploring = &explore->exploring;
    const struct results_about *about = &exploring->results.about;
    autosnapshot struct snapshot snapshot = SNAPSHOT_NONE;
    autofree char *name = text_format("explore-%s", about->run);
    struct error none;

    if (strcmp(about->digest, explore->digest) != 0)
        return error_set(err, ERROR_REFUSED,
                         "%.200s has results of another command, score or tasks: take another file",
                         explore->results_path);
    if (snapshot_read(explore->state, name, &snapshot, &none) == 0 &&
        strcmp(snapshot.layer, about->layer) == 0) {
        explore->snapshot = steal_ptr(&name);
        return 0;
    }
    if (strcmp(explore->forking.layer, about->layer) != 0)
        return error_set(err, ERROR_REFUSED,
                         "%.200s has results from another state of the sandbox: take another file",
                         explore->results_path);
    (void)snapshot_remove(explore->state, name, &none); /* one that was never finished */
    return hold(explore, about->run, err);
}

static int begin(struct explore *explore, struct error *err)
{
    struct exploring *exploring = &explore->exploring;
    bool old = exploring->results.about.run;

    if ((old ? take_up_run(explore, err) : begin_run(explore, err)) < 0)
        return -1;
    exploring->from = explore->snapshot;
    exploring->label = text_format("explore=%s", exploring->results.about.run);
    exploring->trying.argv = &explore->argv;
    exploring->trying.env = &explore->env;
    exploring->trying.files = &explore->files;
    exploring->trying.spec = explore->forking.spec;
    exploring->admission.limit_kib = memory_limit(explore->forking.spec);
    return old ? exploring_sweep(exploring->label, &exploring->results, exploring->keep, err) : 0;
}

/* --- results that nobody asked for: for whoever comes after a kill --- */

static int open_folder(const char *state, struct error *err)
{
    autoclose int fd = open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 ? error_sys(err, "open %s", state) : store_open_private(fd, "explore", "explore", err);
}

/* What somebody left who was killed: sandboxes that nobody has named, the snapshot, the file. */
static void sweep_file(const char *state, int folder, const char *name)
{
    autofree char *path = text_format("%s/explore/%s", state, name);
    autoresults struct results results = RESULTS_NONE;
    struct error ignored;
    struct stat status;
    autoclose int fd = results_open(path, &results, &ignored);

    if (fd < 0 || fstat(fd, &status) < 0)
        return;
    if (!results.about.run && time(NULL) - status.st_mtime < 60)
        return; /* somebody may be about to write its first line */
    if (results.about.run) {
        autofree char *label = text_format("explore=%s", results.about.run),
                      *snapshot = text_format("explore-%s", results.about.run);

        if (exploring_sweep(label, &results, KEEP_NONE, &ignored) < 0)
            return;
        (void)snapshot_remove(state, snapshot, &ignored);
    }
    (void)unlinkat(folder, name, 0);
}

static void sweep_dead(const char *state)
{
    struct error ignored;
    int fd = open_folder(state, &ignored);
    autoclosedir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    autostrings struct strings names = STRINGS_NONE;

    for (struct dirent *entry; dir && (entry = readdir(dir));)
        if (text_ends(entry->d_name, ".jsonl"))
            strings_add(&names, entry->d_name);
    for (size_t i = 0; i < names.len; i++)
        sweep_file(state, dirfd(dir), names.items[i]);
}

static int open_results(struct explore *explore, struct error *err)
{
    struct exploring *exploring = &explore->exploring;
    char name[ID_LENGTH + 1];

    explore->results_ours = !explore->options->results;
    if (store_new_id(name, err) < 0)
        return -1;
    explore->results_path = explore->results_ours ? text_format("%s/explore/%s.jsonl", explore->state, name)
                                                  : text_copy(explore->options->results);
    exploring->results_fd = results_open(explore->results_path, &exploring->results, err);
    return exploring->results_fd < 0 ? -1 : 0;
}

static void close_results(struct explore *explore)
{
    autofree char *folder = text_format("%s/explore", explore->state);

    if (explore->results_ours && explore->results_path)
        (void)unlink(explore->results_path);
    (void)rmdir(folder); /* unless others are at work */
}

/* --- the winner --- */

static int give_name(const struct which *which, const struct kept *kept, const char *name, struct error *err)
{
    struct sandbox_dir dir = SANDBOX_DIR_NONE;
    autorecord struct record record = RECORD_NONE;

    if (staying_open(which, kept, &dir, err) < 0)
        return -1;

    int result = record_read(dir.fd, kept->id, &record, err);

    if (result == 0) {
        free(record.name);
        record.name = text_copy(name);
        result = keep_name(&dir, &record, err);
    }
    own_close(&dir.fd);
    own_close(&dir.parent);
    return result;
}

/* A name that is taken is no reason to lose the sandbox. */
static void name_winner(const struct explore *explore, const struct tried *best)
{
    autowhich struct which which = WHICH_NONE;
    struct error err;
    const char *run = explore->exploring.results.about.run, *wanted = explore->options->name;
    autofree char *base = wanted ? text_copy(wanted) : text_format("best-%.6s", run);
    autofree char *name =
        best->task ? text_format("%s-%llu", base, (unsigned long long)best->task) : text_copy(base);
    const struct kept *kept = which_read(&which, &err) < 0 ? NULL : which_sandbox(&which, best->id, &err);

    if (kept && (kept->record.name || give_name(&which, kept, name, &err) == 0))
        return;
    say_warning("the best try has no name: %s", err.text);
}

static void name_winners(const struct explore *explore)
{
    const struct exploring *exploring = &explore->exploring;
    uint64_t tasks = exploring->tasks.len;

    for (uint64_t task = tasks ? 1 : 0; exploring->keep != KEEP_NONE && task <= tasks; task++) {
        const struct tried *best = ranking_best(&exploring->results, task);

        if (best && best->id)
            name_winner(explore, best);
    }
}

/* --- the whole --- */

static int show(const struct explore *explore)
{
    const struct exploring *exploring = &explore->exploring;
    bool good = false;

    for (size_t i = 0; i < exploring->results.len && !good; i++)
        good = ranking_is_good(&exploring->results.items[i]);
    (explore->options->json ? ranked_json : ranked_table)(&exploring->results, exploring->keep,
                                                          explore->options->score);
    if (exploring->signal) {
        fprintf(stderr, "cove: stopped by signal %d after %zu tries; nothing of the others is left\n",
                exploring->signal, exploring->results.len);
        if (!explore->results_ours)
            fputs("cove: the same command goes on with the rest\n", stderr);
        return EXIT_SIGNALED + exploring->signal;
    }
    return good ? 0 : 1;
}

static int run(struct explore *explore, struct error *err)
{
    struct exploring *exploring = &explore->exploring;
    struct error why;

    if (begin(explore, err) < 0) {
        let_go(explore);
        return -1;
    }

    int result = exploring_run(exploring, err);

    if ((result < 0 || exploring->signal || exploring->untidy) &&
        exploring_sweep(exploring->label, &exploring->results, exploring->keep, &why) < 0)
        say_error(&why);
    if (result == 0 && (!exploring->signal || explore->results_ours))
        name_winners(explore);
    let_go(explore);
    return result < 0 ? -1 : show(explore);
}

static int prepare(struct explore *explore, struct error *err)
{
    autohost struct host host = { 0 };

    if (read_options(explore, err) < 0 || exploring_listen(&explore->exploring, err) < 0 ||
        host_read(&host, err) < 0 || forking_look(explore->from, &explore->forking, err) < 0)
        return -1;
    explore->state = text_copy(host.state);
    sweep_dead(explore->state);
    if (scorefiles_read(&explore->options->score_files, explore->forking.workspace, &explore->files, err) < 0)
        return -1;
    set_digest(explore);
    return open_results(explore, err);
}

int cli_explore(struct options *options, struct error *err)
{
    struct explore explore = { 0 };

    explore.options = &options->run;
    explore.exploring.results_fd = explore.exploring.signals = -1;

    int result = read_words(options, &explore, err);

    if (result == 0)
        result = prepare(&explore, err);
    if (result == 0)
        result = run(&explore, err);
    if (explore.state)
        close_results(&explore);
    explore_free(&explore);
    return result;
}
