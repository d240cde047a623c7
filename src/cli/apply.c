#include "cli/apply.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "changes/apply.h"
#include "changes/digest.h"
#include "changes/patch.h"
#include "changes/review.h"
#include "changes/space.h"
#include "cli/changed.h"
#include "cli/commits.h"
#include "cli/ledger.h"
#include "cli/outcome.h"
#include "cli/paint.h"
#include "cli/remark.h"
#include "cli/say.h"
#include "cli/verifying.h"
#include "git/own.h"
#include "spec/node.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { ASK_LINES_MAX = 60 };

const struct option_row options_of_apply[] = {
    { "yes", 'y', NULL,
      "Do not ask about ordinary changes; files that act by merely being there are asked for all the same, and "
      "so "
      "are commits that change such files",
      OPTION_BOOL, offsetof(struct run_options, yes) },
    { "interactive", 'i', NULL, "Ask about each change", OPTION_BOOL,
      offsetof(struct run_options, interactive) },
    { "allow-autorun", 0, "PATH",
      "Take also PATH, which acts by merely being there, without a question, as a file and in commits",
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
    { "commits", 0, NULL, "Bring commits home also where PATHs are named", OPTION_BOOL,
      offsetof(struct run_options, commits) },
    { "no-commits", 0, NULL, "Leave the commits", OPTION_BOOL, offsetof(struct run_options, no_commits) },
    { "only-commits", 0, NULL,
      "Bring the commits and leave the files, which a merge of the branch then changes", OPTION_BOOL,
      offsetof(struct run_options, only_commits) },
    { "reviewed", 0, "DIGEST", "Refuse unless the changes are those that `cove diff` gave this digest for",
      OPTION_STRING, offsetof(struct run_options, reviewed) },
    { "ignored", 0, NULL, "Bring also what git ignores; without it only what a PATH names", OPTION_BOOL,
      offsetof(struct run_options, ignored) },
    { "conflict", 0, "WAY",
      "Where you changed a PATH too: host keeps yours, sandbox takes the sandbox's, both keeps yours and puts "
      "the sandbox's beside it as PATH.cove-NAME",
      OPTION_STRING, offsetof(struct run_options, conflict) },
    { "dry-run", 0, NULL, "Say what would be done, and do nothing", OPTION_BOOL,
      offsetof(struct run_options, dry_run) },
    { "json", 0, NULL, "Print JSON", OPTION_BOOL, offsetof(struct run_options, json) },
    { NULL },
};

/* What -i does with the changes that are still to come. */
enum rest { REST_ASK, REST_TAKE, REST_LEAVE };

/* What the owner said about each change. */
struct consent {
    struct changed *changed;
    const struct run_options *options;
    struct strings exclude, autorun; /* as the changes have their paths */
    struct review review;
    bool *taken;
    enum rest rest;
    struct node *told; /* for --json: takes what came of it */
};

/* A file that was renamed leaves its old place. */
static bool is_listed(const struct strings *paths, const struct change *change)
{
    return changed_is_listed(paths, change->path) || (change->from && changed_is_listed(paths, change->from));
}

/* Files that act by merely being there are answered one by one. */
static bool ask(struct consent *consent, const char *question, bool alone)
{
#define YES_OR_NO "y  bring it home\nn  leave it in the sandbox\n"
#define QUIT "q  leave it and all that follow, commits too; what you said y to comes home\n"
    static const char help[] = YES_OR_NO "a  bring it and all ordinary ones that follow\n" QUIT;
    static const char help_alone[] = YES_OR_NO QUIT;

    if (!isatty(STDIN_FILENO) || !consent->options->interactive)
        return say_ask(question);

    char answer = say_choose(question, alone ? "yNq?" : "yNaq?", alone ? help_alone : help);

    if (answer == 'a')
        consent->rest = REST_TAKE;
    if (answer == 'q')
        consent->rest = REST_LEAVE;
    return answer == 'y' || answer == 'a';
}

static bool ask_about(struct consent *consent, size_t index)
{
    const struct changed *changed = consent->changed;
    struct patch_source source = { changed->upper, changed->base, true };
    autotext struct text question = TEXT_NONE, patch = TEXT_NONE;

    patch_add(&source, &changed->changes, index, &patch);
    if (isatty(STDIN_FILENO))
        paint_inert(stderr, &patch, ASK_LINES_MAX);
    text_addf(&question, "%s ", changed_kind_name(changed->changes.items[index].kind));
    remark_add(&changed->changes.items[index], &consent->review.items[index], &question);
    text_add(&question, "; bring it home?");
    return ask(consent, text_string(&question), consent->review.items[index].verdict.class == CLASSIFY_AUTORUN);
}

static int check_reviewed(const struct consent *consent, struct error *err)
{
    const char *reviewed = consent->options->reviewed;
    char digest[SHA256_TEXT];

    digest_changes(&consent->changed->changes, consent->review.contents, digest);
    if (!reviewed || strcmp(reviewed, digest) == 0)
        return 0;
    error_set(err, ERROR_REFUSED, "these are not the changes that were reviewed; their digest is %s", digest);
    return error_hint(err, "look at them again: cove diff");
}

/* What is about to be asked for, for whoever did not look at the diff first. */
static void list_changes(const struct consent *consent)
{
    size_t shown = 0;

    for (size_t i = 0; i < consent->changed->changes.len; i++) {
        const struct change *change = &consent->changed->changes.items[i];
        const struct review_item *item = &consent->review.items[i];
        autotext struct text line = TEXT_NONE;

        if (item->folded || item->verdict.class == CLASSIFY_AUTORUN || shown++ >= ASK_LINES_MAX)
            continue;
        remark_add(change, item, &line);
        fprintf(stderr, "%-8s %s\n", changed_kind_name(change->kind), text_string(&line));
    }
    if (shown > ASK_LINES_MAX)
        fprintf(stderr, "and %zu more; cove diff --stat lists them all\n", shown - ASK_LINES_MAX);
}

static bool agrees_to_all(const struct consent *consent)
{
    const struct review *review = &consent->review;
    size_t count = review->items_len - review->folded - review->elsewhere - review->autorun;
    autofree char *marked = review->build
                                ? text_format(", %zu of them run when you build, test or commit", review->build)
                                : text_copy("");
    autofree char *apart =
        review->autorun
            ? text_format(" (%zu more act by merely being there, and are asked for next)", review->autorun)
            : text_copy("");
    autofree char *question =
        text_format("bring %zu change%s home%s%s?", count, count == 1 ? "" : "s", marked, apart);

    if (consent->options->yes || consent->options->dry_run || count == 0)
        return true;
    if (isatty(STDIN_FILENO))
        list_changes(consent);
    return say_ask(question);
}

/* Whoever names the whole workspace has named nothing. */
static bool is_allowed(const struct consent *consent, const struct change *change)
{
    return !strings_have(&consent->autorun, "") && changed_is_listed(&consent->autorun, change->path);
}

/* What comes home needs the new directories around it. */
static void take_around(struct consent *consent, size_t index)
{
    const struct change *items = consent->changed->changes.items;

    for (size_t i = index; i-- > 0;) {
        bool around =
            text_starts(items[index].path, items[i].path) && items[index].path[strlen(items[i].path)] == '/';

        if (around && items[i].kind == CHANGE_ADDED &&
            consent->review.items[i].verdict.class != CLASSIFY_AUTORUN)
            consent->taken[i] = true;
    }
}

static bool is_wanted(struct consent *consent, size_t index, bool all)
{
    const struct run_options *options = consent->options;
    const struct change *change = &consent->changed->changes.items[index];

    if (consent->review.items[index].folded || is_listed(&consent->exclude, change) ||
        git_own_change(change) != GIT_NOT_OWN)
        return false;
    if (consent->review.items[index].verdict.class == CLASSIFY_AUTORUN)
        return is_allowed(consent, change) ||
               (!options->dry_run && consent->rest != REST_LEAVE && ask_about(consent, index));
    if (!options->interactive || options->dry_run || consent->rest != REST_ASK)
        return consent->rest != REST_LEAVE && all;
    return ask_about(consent, index);
}

/* 1: the owner wants nothing of it. */
static int decide(struct consent *consent, struct error *err)
{
    bool interactive = consent->options->interactive, all = interactive || agrees_to_all(consent);

    if (!all && !isatty(STDIN_FILENO))
        return error_set(err, ERROR_INVALID, "there is nobody to ask; say --yes");
    if (!all)
        return 1;
    for (size_t i = 0; i < consent->changed->changes.len; i++) {
        consent->taken[i] = is_wanted(consent, i, all);
        if (consent->taken[i] && (interactive || consent->review.items[i].verdict.class == CLASSIFY_AUTORUN))
            take_around(consent, i);
    }
    return 0;
}

static bool is_taken(void *owner, const struct change *change)
{
    const struct consent *consent = owner;

    return consent->taken[change - consent->changed->changes.items];
}

/* git's own files, whatever was said about them. */
static void refuse_own(const struct consent *consent, struct apply_result *results)
{
    const struct changes *changes = &consent->changed->changes;

    for (size_t i = 0; i < changes->len; i++) {
        const struct change *change = &changes->items[i];

        if (git_own_change(change) == GIT_NOT_OWN || consent->review.items[i].folded ||
            is_listed(&consent->exclude, change))
            continue;
        results[i].outcome = APPLY_REFUSED;
        error_set(&results[i].why, ERROR_REFUSED, "%s", git_own_reason(change));
    }
}

/* --- what came of it --- */

static bool tell(const struct consent *consent, int tree, const struct apply_result *results)
{
    struct outcome outcome = { .changed = consent->changed,
                               .review = &consent->review,
                               .results = results,
                               .tree = tree,
                               .dry_run = consent->options->dry_run,
                               .at_home = !consent->options->to };

    consent->told ? outcome_add_nodes(&outcome, consent->told) : outcome_print(&outcome);
    remark_summary(&consent->changed->changes, &consent->review);
    return outcome_is_clean(&outcome);
}

/* In this workspace, that is: elsewhere it is another question. */
static int settle(const struct consent *consent, const struct apply_result *results, struct error *err)
{
    const struct changes *changes = &consent->changed->changes;
    autostrings struct strings paths = STRINGS_NONE;

    for (size_t i = 0; i < changes->len; i++)
        if (results[i].outcome == APPLY_SETTLED)
            strings_add(&paths, changes->items[i].path);
    if (!paths.len || consent->options->dry_run || consent->options->to)
        return 0;
    return ledger_settle(consent->changed, &paths, err) < 0 ? error_while(err, "note what stays as it is") : 0;
}

static int open_tree(const struct changed *changed, const struct run_options *options, struct error *err)
{
    autoclose int fd = options->to ? open(options->to, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                                   : fcntl(changed->tree, F_DUPFD_CLOEXEC, 0);

    if (fd < 0)
        return error_sys(err, "open %.200s", options->to ? options->to : "the workspace");
    /* Two would take what the other one is just making for something left over. */
    if (!options->dry_run && flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
        return error_set(err, ERROR_REFUSED, "another cove apply is at work here; wait for its end");
    return steal_fd(&fd);
}

/* To write over what the owner wrote has to be asked for by name. */
static int choose_way(const struct consent *consent, struct apply *out, struct error *err)
{
    static const char *const ways[] = {
        [APPLY_WAY_HOST] = "host", [APPLY_WAY_SANDBOX] = "sandbox", [APPLY_WAY_BOTH] = "both"
    };
    const char *wanted = consent->options->conflict;

    for (size_t i = APPLY_WAY_HOST; wanted && i < ARRAY_LEN(ways); i++)
        if (strcmp(wanted, ways[i]) == 0)
            out->way = (enum apply_way)i;
    if (wanted && out->way == APPLY_WAY_NONE)
        return error_set(err, ERROR_INVALID, "--conflict is host, sandbox or both, not '%.40s'", wanted);
    if (out->way == APPLY_WAY_SANDBOX && !consent->changed->paths.len)
        return error_set(err, ERROR_INVALID, "--conflict sandbox replaces what you wrote; name the PATHs");
    return 0;
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
        (void)tell(consent, apply->tree, results);
        say_warning("nothing was verified or brought home; leave out what is refused or in conflict with "
                    "--exclude PATH");
    }
    return verified == VERIFIED_YES;
}

/* Before anything is written: half of the changes and a full disk help nobody. */
static int check_space(const struct consent *consent, const struct apply *apply, struct error *err)
{
    uint64_t wanted = space_of_changes(&consent->changed->changes, consent->taken);

    if (apply->only_look || space_is_shared(apply->upper, apply->tree) ||
        space_check(apply->tree, wanted, err) == 0)
        return 0;
    error_while(err, "bring the changes home");
    return error_hint(err, "make room, or name the PATHs that you want");
}

/* 1: it was not wanted, or what was to be verified was not: nothing comes home. */
static int bring_home(struct consent *consent, bool *out_clean, struct error *err)
{
    struct changed *changed = consent->changed;
    struct patch_source source = { changed->upper, changed->base, true };
    const struct record *record = &changed->kept->record;
    autofree struct apply_result *results = memory_zero((changed->changes.len + 1) * sizeof *results);
    autofree char *suffix = record->name ? text_format(".cove-%s", record->name)
                                         : text_format(".cove-%.*s", KEPT_ID_SHOWN, changed->kept->id);
    autoclose int tree = open_tree(changed, consent->options, err);
    struct apply apply = { .upper = changed->upper,
                           .tree = tree,
                           .since = record_since(record),
                           .ours = &changed->ours,
                           .only_look = consent->options->dry_run,
                           .suffix = suffix };

    if (tree < 0 || choose_way(consent, &apply, err) < 0)
        return -1;
    changed_review(changed, consent->options->ignored, &consent->review);
    review_digest(&source, &changed->changes, &consent->review);
    apply.contents = consent->review.contents;
    if (check_reviewed(consent, err) < 0)
        return -1;

    int decided = decide(consent, err);

    if (decided != 0)
        return decided;
    if (check_space(consent, &apply, err) < 0)
        return -1;
    if (consent->options->verify) {
        int verified = verify(consent, &apply, results, err);

        if (verified <= 0)
            return verified < 0 ? -1 : 1;
    }

    int written = apply_changes(&apply, &changed->changes, is_taken, consent, results, err);

    refuse_own(consent, results);
    *out_clean = tell(consent, tree, results);
    return settle(consent, results, err) < 0 ? -1 : written;
}

static void consent_free(struct consent *consent)
{
    review_free(&consent->review);
    strings_free(&consent->exclude);
    strings_free(&consent->autorun);
    free(consent->taken);
}

static struct node *begin_told(const struct consent *consent, struct node *root)
{
    node_add(root, "id", NODE_STRING, consent->changed->kept->id);
    node_add(root, "dry_run", NODE_BOOL, consent->options->dry_run ? "true" : "false");
    return root;
}

/* Of what did not come to pass there is only an error. */
static void print_told(struct node *root)
{
    autotext struct text out = TEXT_NONE;

    if (!node_get(root, "changes") && !node_get(root, "git"))
        return;
    node_write_json(root, &out);
    puts(text_string(&out));
}

int cli_apply(struct options *options, struct error *err)
{
    autochanged struct changed changed = CHANGED_NONE;
    autonode struct node root = { .kind = NODE_MAP };
    bool clean = false;

    struct changed_wish wish = { .words = &options->words,
                                 .to = options->run.to,
                                 .home = options->run.to != NULL };

    if (changed_read(&wish, &changed, err) < 0)
        return -1;

    __attribute__((cleanup(consent_free))) struct consent consent = {
        .changed = &changed,
        .options = &options->run,
        .taken = memory_zero((changed.changes.len + 1) * sizeof *consent.taken)
    };

    if (options->run.json)
        consent.told = begin_told(&consent, &root);
    if (changed_paths(&changed, &options->run.exclude, 0, &consent.exclude, err) < 0 ||
        changed_paths(&changed, &options->run.autorun, 0, &consent.autorun, err) < 0)
        return -1;
    changed_warn(&changed, &consent.exclude);
    changed_tell_elsewhere(&changed);

    clean = true;
    int brought = options->run.only_commits ? 0 : bring_home(&consent, &clean, err);

    if (brought == 0 && consent.rest != REST_LEAVE) {
        struct commits_wish commits = { &options->run, &consent.autorun, consent.told };

        brought = commits_apply(&changed, &commits, &clean, err);
    }
    if (consent.told)
        print_told(&root);
    if (brought < 0)
        return -1;
    /* It is told by `cove ls`; whatever came home is there without it. */
    if (brought == 0 && clean && !options->run.dry_run && !options->run.to &&
        ledger_note_applied(&changed, err) < 0)
        say_warning("%s", err->text);
    return brought == 0 && clean ? 0 : 1;
}
