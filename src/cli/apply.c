#include "cli/apply.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "changes/apply.h"
#include "changes/patch.h"
#include "cli/changed.h"
#include "cli/commands.h"
#include "cli/say.h"
#include "cli/verdict.h"
#include "cli/verifying.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const struct option_row options_of_apply[] = {
    { "yes", 'y', NULL,
      "Do not ask about ordinary changes; files that act by merely being there are asked for all the same",
      OPTION_BOOL, offsetof(struct run_options, yes) },
    { "interactive", 'i', NULL, "Ask about each change", OPTION_BOOL,
      offsetof(struct run_options, interactive) },
    { "allow-autorun", 0, "PATH", "Take also PATH, which acts by merely being there, without a question",
      OPTION_LIST, offsetof(struct run_options, autorun) },
    { "exclude", 0, "PATH", "Leave PATH and what is below it", OPTION_LIST,
      offsetof(struct run_options, exclude) },
    { "to", 0, "DIR", "Bring the changes to DIR, another copy of the same tree", OPTION_STRING,
      offsetof(struct run_options, to) },
    { "verify", 0, "COMMAND",
      "First lay the chosen changes on a fresh copy of the workspace and run sh -c COMMAND there, in a sandbox "
      "without network; only if it exits with 0 they are brought home",
      OPTION_STRING, offsetof(struct run_options, verify) },
    { "timeout", 0, "DURATION", "End the command of --verify after DURATION; nothing is brought home then",
      OPTION_STRING, offsetof(struct run_options, timeout) },
    { "dry-run", 0, NULL, "Say what would be done, and do nothing", OPTION_BOOL,
      offsetof(struct run_options, dry_run) },
    { NULL },
};

/* What the owner said about each change. */
struct consent {
    const struct changed *changed;
    const struct run_options *options;
    struct verdict *verdicts; /* one a change */
    bool *taken;
    size_t ordinary, build, autorun;
};

static bool is_listed(const struct strings *paths, const char *path)
{
    for (size_t i = 0; i < paths->len; i++) {
        const char *wanted = paths->items[i] + (text_starts(paths->items[i], "./") ? 2 : 0);
        size_t len = strlen(wanted);

        if (strncmp(path, wanted, len) == 0 && (path[len] == '\0' || path[len] == '/'))
            return true;
    }
    return false;
}

/* Anything but y is no; without a terminal there is nobody to ask. */
static bool ask(const char *question)
{
    char answer[16] = "";

    if (!isatty(STDIN_FILENO))
        return false;
    fprintf(stderr, "%s [y/N] ", question);
    fflush(stderr);
    return fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

static bool ask_about(const struct change *change, const struct verdict *verdict)
{
    autotext struct text question = TEXT_NONE;

    text_addf(&question, "%s ", changed_kind_name(change->kind));
    changed_describe(change, &question);
    if (verdict->class != CLASSIFY_ORDINARY)
        text_addf(&question, " -- %s%s%s", verdict->reason, *verdict->part ? ": " : "", verdict->part);
    text_add(&question, "; bring it home?");
    return ask(text_string(&question));
}

static void classify_all(struct consent *consent)
{
    struct patch_source source = { consent->changed->upper, consent->changed->base };
    const struct changes *changes = &consent->changed->changes;

    for (size_t i = 0; i < changes->len; i++) {
        struct verdict *verdict = &consent->verdicts[i];

        verdict_of(&source, changes, i, verdict);
        consent->ordinary += verdict->class == CLASSIFY_ORDINARY;
        consent->build += verdict->class == CLASSIFY_BUILD;
        consent->autorun += verdict->class == CLASSIFY_AUTORUN;
    }
}

static bool agrees_to_all(const struct consent *consent)
{
    autofree char *marked =
        consent->build ? text_format(", %zu of them run when you build, test or commit", consent->build)
                       : text_copy("");
    autofree char *question = text_format("bring %zu change%s home%s?", consent->ordinary + consent->build,
                                          consent->ordinary + consent->build == 1 ? "" : "s", marked);

    return consent->options->yes || consent->options->dry_run || consent->ordinary + consent->build == 0 ||
           ask(question);
}

static int decide(struct consent *consent, struct error *err)
{
    const struct run_options *options = consent->options;
    const struct changes *changes = &consent->changed->changes;
    bool all = options->interactive || agrees_to_all(consent);

    if (!all && !isatty(STDIN_FILENO))
        return error_set(err, ERROR_INVALID, "there is nobody to ask; say --yes, or name what to bring home");
    for (size_t i = 0; i < changes->len; i++) {
        const struct change *change = &changes->items[i];

        if (is_listed(&options->exclude, change->path))
            continue;
        if (consent->verdicts[i].class == CLASSIFY_AUTORUN)
            consent->taken[i] = is_listed(&options->autorun, change->path) || options->dry_run ||
                                ask_about(change, &consent->verdicts[i]);
        else
            consent->taken[i] = options->interactive ? ask_about(change, &consent->verdicts[i]) : all;
    }
    return 0;
}

static bool is_taken(void *owner, const struct change *change)
{
    const struct consent *consent = owner;

    return consent->taken[change - consent->changed->changes.items];
}

/* --- what came of it --- */

static bool tell(const struct consent *consent, const struct apply_result *results)
{
    static const char *const words[] = {
        [APPLY_DONE] = "done",       [APPLY_SAME] = "same",     [APPLY_CONFLICT] = "CONFLICT",
        [APPLY_REFUSED] = "REFUSED", [APPLY_FAILED] = "FAILED", [APPLY_LEFT] = "left"
    };
    size_t counts[APPLY_LEFT + 1] = { 0 };
    const struct changes *changes = &consent->changed->changes;

    for (size_t i = 0; i < changes->len; i++) {
        autotext struct text line = TEXT_NONE;
        const struct verdict *verdict = &consent->verdicts[i];

        counts[results[i].outcome]++;
        text_addf(&line, "%-8s ", words[results[i].outcome]);
        changed_describe(&changes->items[i], &line);
        if (results[i].outcome == APPLY_CONFLICT || results[i].outcome == APPLY_REFUSED ||
            results[i].outcome == APPLY_FAILED) {
            text_add(&line, ": ");
            text_add_inert(&line, results[i].why.text);
        } else if (verdict->class != CLASSIFY_ORDINARY) {
            text_addf(&line, " [%s%s%s]", verdict->reason, *verdict->part ? ": " : "", verdict->part);
        }
        puts(text_string(&line));
    }
    printf("%zu %s, %zu there already, %zu left, %zu refused, %zu conflicts, %zu failed\n", counts[APPLY_DONE],
           consent->options->dry_run ? "would be brought home" : "brought home", counts[APPLY_SAME],
           counts[APPLY_LEFT], counts[APPLY_REFUSED], counts[APPLY_CONFLICT], counts[APPLY_FAILED]);
    return !counts[APPLY_REFUSED] && !counts[APPLY_CONFLICT] && !counts[APPLY_FAILED];
}

static int open_tree(const struct changed *changed, const struct run_options *options, struct error *err)
{
    int fd = options->to ? open(options->to, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                         : fcntl(changed->tree, F_DUPFD_CLOEXEC, 0);

    return fd < 0 ? error_sys(err, "open %.200s", options->to ? options->to : "the workspace") : fd;
}

/* 1 if the changes may be brought home; 0 if not, and it was said why. */
static int verify(const struct consent *consent, const struct apply *apply, struct apply_result *results,
                  struct error *err)
{
    struct verifying verifying = { .changed = consent->changed,
                                   .apply = *apply,
                                   .wanted = is_taken,
                                   .owner = (void *)(uintptr_t)consent,
                                   .command = consent->options->verify,
                                   .timeout = consent->options->timeout };
    enum verified verified;

    if (verifying_run(&verifying, results, &verified, err) < 0)
        return -1;
    if (verified == VERIFIED_NO)
        say_error(err);
    if (verified == VERIFIED_NOT_WHOLE) {
        for (size_t i = 0; i < consent->changed->changes.len; i++)
            if (results[i].outcome == APPLY_DONE || results[i].outcome == APPLY_SAME)
                results[i].outcome = APPLY_LEFT; /* it was done on the copy only */
        (void)tell(consent, results);
        say_warning("nothing was verified or brought home; leave out what is refused or in conflict");
    }
    return verified == VERIFIED_YES;
}

static int bring_home(struct consent *consent, bool *out_clean, struct error *err)
{
    const struct changed *changed = consent->changed;
    autofree struct apply_result *results = memory_zero((changed->changes.len + 1) * sizeof *results);
    autoclose int tree = open_tree(changed, consent->options, err);
    struct apply apply = { .upper = changed->upper,
                           .tree = tree,
                           .since = changed->kept->record.created,
                           .only_look = consent->options->dry_run };

    if (tree < 0)
        return -1;
    classify_all(consent);
    if (decide(consent, err) < 0)
        return -1;
    if (consent->options->verify) {
        int verified = verify(consent, &apply, results, err);

        *out_clean = false;
        if (verified <= 0)
            return verified;
    }
    if (apply_changes(&apply, &changed->changes, is_taken, consent, results, err) < 0)
        return -1;
    *out_clean = tell(consent, results);
    return 0;
}

int cli_apply(const struct command *command, int argc, char **argv)
{
    autooptions struct options options = OPTIONS_NONE;
    autochanged struct changed changed = CHANGED_NONE;
    struct error err = { 0 };
    bool clean = false;

    if (options_parse(command, argc, argv, &options, &err) < 0)
        return say_error(&err);
    if (options.run.help) {
        say_help(command);
        return 0;
    }
    if (changed_read(&options.words, &changed, &err) < 0)
        return which_error(&err);

    autofree struct verdict *verdicts = memory_zero((changed.changes.len + 1) * sizeof *verdicts);
    autofree bool *taken = memory_zero((changed.changes.len + 1) * sizeof *taken);
    struct consent consent = {
        .changed = &changed, .options = &options.run, .verdicts = verdicts, .taken = taken
    };

    if (bring_home(&consent, &clean, &err) < 0)
        return say_error(&err);
    return clean ? 0 : 1;
}
