#include "cli/commits.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "changes/patch.h"
#include "cli/changed.h"
#include "cli/options.h"
#include "cli/say.h"
#include "git/commits.h"
#include "git/own.h"
#include "spec/node.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SHOWN_MAX = 50, HASH_SHOWN = 12, HOLD_MS = 2000 };

static int find(const struct changed *changed, int dir, struct commits *out, struct error *err)
{
    return commits_find(&changed->which.host, dir, &changed->kept->record, out, err);
}

static const char *many(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* --- a repository outside of the workspace ---------------------------------------------------- */

/* The layer over the repository of a linked work tree, and what was changed there. */
struct outside {
    const char *path; /* NULL: there is none */
    struct merged layer;
    struct changes changes;
};

static void outside_free(struct outside *outside)
{
    merged_close(&outside->layer);
    changes_free(&outside->changes);
}

#define autooutside __attribute__((cleanup(outside_free)))

static int outside_read(const struct changed *changed, struct outside *out, struct error *err)
{
    const struct record *record = &changed->kept->record;
    const struct record_layer *layer = repository_layer(record);
    autoclose int dir = -1;

    *out = (struct outside){ .layer = MERGED_NONE };
    if (!layer || !changed->all)
        return 0;
    dir = kept_open(&changed->which.all, changed->kept, err);
    if (dir < 0 || repository_open_layer(dir, record, layer, &out->layer, err) < 0)
        return -1;

    struct changes_source source = { .upper = out->layer.upper,
                                     .base = out->layer.base,
                                     .marks = out->layer.marks,
                                     .inside = layer->target,
                                     .hide = &layer->hide,
                                     .since = record->created,
                                     .shift = record->shifted ? (uid_t)record->base : 0 };

    out->path = layer->source;
    return changes_scan(&source, &out->changes, err);
}

static bool steers(const struct change *change)
{
    return change->new.type != SIDE_DIRECTORY &&git_own_below(change->path) == GIT_OWN_STEERS;
}

/* Adds one line for each file that steers git, after `word`; gives how many others there are. */
static uint64_t outside_describe(const struct outside *outside, const char *word, struct text *out,
                                 size_t *steering)
{
    uint64_t others = 0;

    for (size_t i = 0; i < outside->changes.len; i++) {
        const struct change *change = &outside->changes.items[i];

        if (!steers(change)) {
            others++;
            continue;
        }
        (*steering)++;
        text_addf(out, "%s%s/", word, outside->path);
        changed_describe(change, out);
        text_addf(out, ": %s\n", git_own_reason(change));
    }
    return others;
}

/* --- telling -------------------------------------------------------------------------------- */

static void add_where(const struct commits *commits, const struct branch *branch, struct text *out)
{
    const char *submodule = commits->repositories.items[branch->repository].submodule;

    if (!submodule)
        return;
    text_add(out, " of the submodule ");
    text_add_inert(out, submodule);
}

static void add_title(const struct commits *commits, const struct branch *branch, struct text *out)
{
    if (branch->broken)
        text_add(out, "commits that cannot be read");
    else
        text_addf(out, "%" PRIu64 " commit%s", branch->count, many(branch->count));
    text_add(out, " on ");
    text_add_inert(out, branch->name);
    add_where(commits, branch, out);
}

static void add_branch(const struct commits *commits, const struct branch *branch, const char *prefix,
                       struct text *out)
{
    text_add(out, prefix);
    add_title(commits, branch, out);
    text_add(out, "\n");
    for (size_t i = 0; i < branch->commits.len && i < SHOWN_MAX; i++) {
        text_addf(out, "%s  %.*s ", prefix, HASH_SHOWN, branch->commits.items[i].hash);
        text_add_inert(out, branch->commits.items[i].subject);
        text_add(out, "\n");
    }
    if (branch->count > SHOWN_MAX)
        text_addf(out, "%s  and %" PRIu64 " more\n", prefix, branch->count - SHOWN_MAX);
}

/* Contents of files that steer git, as the rest of the diff has them. */
static void add_outside(const struct changed *changed, const char *prefix, uint64_t *state, struct text *out)
{
    autooutside struct outside outside = { .layer = MERGED_NONE };
    struct patch_source source;
    size_t steering = 0;
    struct error err;

    if (outside_read(changed, &outside, &err) < 0) {
        say_warning("%s", err.text);
        return;
    }
    *state += outside_describe(&outside, prefix, out, &steering);
    source = (struct patch_source){ outside.layer.upper, outside.layer.base, true };
    for (size_t i = 0; *prefix && i < outside.changes.len; i++) {
        autotext struct text patch = TEXT_NONE;
        autofree char *line = NULL;
        char *rest = NULL;

        if (!steers(&outside.changes.items[i]))
            continue;
        patch_add(&source, &outside.changes, i, &patch);
        line = text_steal(&patch);
        for (char *at = strtok_r(line, "\n", &rest); at; at = strtok_r(NULL, "\n", &rest)) {
            text_add(out, prefix);
            text_add_inert(out, at);
            text_add(out, "\n");
        }
    }
}

void commits_print(const struct changed *changed, uint64_t state, const char *prefix)
{
    autoclose int dir = -1;
    autocommits struct commits commits = COMMITS_NONE;
    autotext struct text out = TEXT_NONE, rest = TEXT_NONE;
    struct error err = { 0 };

    if (!changed->all && !state)
        return;
    add_outside(changed, prefix, &state, &out);
    dir = kept_open(&changed->which.all, changed->kept, &err);
    if (dir < 0 || find(changed, dir, &commits, &err) < 0)
        say_warning("%s", err.text);
    for (size_t i = 0; i < commits.branches.len; i++)
        add_branch(&commits, &commits.branches.items[i], prefix, &rest);
    if (commits.odd)
        text_addf(&rest, "%s%zu reference%s that git would not take\n", prefix, commits.odd, many(commits.odd));
    if (state)
        text_addf(&out, "%sgit's own state: %" PRIu64 " file%s%s\n", prefix, state, many(state),
                  commits.branches.len ? "; the commits:" : ", no commit that you do not have");
    fputs(text_string(&out), stdout);
    fputs(text_string(&rest), stdout);
}

static void add_branch_node(const struct commits *commits, const struct branch *branch, struct node *list)
{
    const struct repository *repository = &commits->repositories.items[branch->repository];
    autofree char *count = text_format("%" PRIu64, branch->count);
    struct node *node = node_add(list, NULL, NODE_MAP, NULL), *items;

    node_add_bytes(node, "branch", branch->name);
    node_add(node, "broken", NODE_BOOL, branch->broken ? "true" : "false");
    node_add(node, "count", NODE_NUMBER, count);
    node_add(node, "hash", NODE_STRING, branch->hash);
    node_add(node, "home", NODE_STRING, branch->home);
    node_add_bytes(node, "repository", repository->path);
    if (repository->submodule)
        node_add_bytes(node, "submodule", repository->submodule);
    items = node_add(node, "commits", NODE_LIST, NULL);
    for (size_t i = 0; i < branch->commits.len; i++) {
        struct node *commit = node_add(items, NULL, NODE_MAP, NULL);

        node_add(commit, "hash", NODE_STRING, branch->commits.items[i].hash);
        node_add_bytes(commit, "subject", branch->commits.items[i].subject);
    }
}

void commits_add_node(const struct changed *changed, uint64_t state_files, struct node *root)
{
    autoclose int dir = -1;
    autocommits struct commits commits = COMMITS_NONE;
    autofree char *state = text_format("%" PRIu64, state_files);
    struct node *git = node_add(root, "git", NODE_MAP, NULL), *list;
    struct error err = { 0 };

    node_add(git, "state", NODE_NUMBER, state);
    list = node_add(git, "branches", NODE_LIST, NULL);
    dir = kept_open(&changed->which.all, changed->kept, &err);
    if (dir < 0 || find(changed, dir, &commits, &err) < 0) {
        node_add(git, "error", NODE_STRING, err.text);
        return;
    }
    for (size_t i = 0; i < commits.branches.len; i++)
        add_branch_node(&commits, &commits.branches.items[i], list);
}

/* What cannot be read is not at home. */
bool commits_are_home(const struct changed *changed, uint64_t state)
{
    autoclose int dir = -1;
    autocommits struct commits commits = COMMITS_NONE;
    autooutside struct outside outside = { .layer = MERGED_NONE };
    struct error err = { 0 };

    if (outside_read(changed, &outside, &err) < 0)
        return false;
    for (size_t i = 0; i < outside.changes.len; i++)
        if (steers(&outside.changes.items[i]))
            return false;
    if (!state && !outside.changes.len)
        return true;
    dir = kept_open(&changed->which.all, changed->kept, &err);
    return dir >= 0 && find(changed, dir, &commits, &err) == 0 && !commits.branches.len;
}

/* --- bringing home -------------------------------------------------------------------------- */

static int may_bring(const struct commits *commits, const struct branch *branch,
                     const struct run_options *options)
{
    autotext struct text question = TEXT_NONE;

    if (options->dry_run || (options->yes && !options->interactive))
        return 1;
    text_add(&question, "bring ");
    add_title(commits, branch, &question);
    text_addf(&question, " home as %s?", branch->home);
    return say_ask(text_string(&question));
}

/* With --json what is on standard output is all JSON. */
static FILE *place_for(const struct run_options *options)
{
    return options->json ? stderr : stdout;
}

static void tell_brought(const struct commits *commits, const struct branch *branch,
                         const struct run_options *options)
{
    const struct repository *repository = &commits->repositories.items[branch->repository];
    autotext struct text line = TEXT_NONE;

    text_add(&line, options->dry_run ? "would    " : "done     ");
    add_title(commits, branch, &line);
    text_addf(&line, " -> %s\n", branch->home);
    if (options->dry_run) {
        fputs(text_string(&line), place_for(options));
        return;
    }
    text_add(&line, "         git ");
    if (repository->submodule) {
        text_add(&line, "-C ");
        text_add_shell_word(&line, repository->work);
        text_add(&line, " ");
    }
    text_addf(&line, "log -p %s   (look before you merge: nothing in a commit was asked for)\n", branch->home);
    fputs(text_string(&line), place_for(options));
}

static void tell_left(const struct commits *commits, const struct branch *branch, const char *word,
                      const struct error *why, const struct run_options *options)
{
    autotext struct text line = TEXT_NONE;

    text_addf(&line, "%-8s ", word);
    add_title(commits, branch, &line);
    if (why) {
        text_add(&line, ": ");
        text_add_inert(&line, why->text);
    }
    fprintf(place_for(options), "%s\n", text_string(&line));
}

static void bring(struct commits *commits, struct branch *branch, const struct run_options *options,
                  bool *clean)
{
    struct error err = { 0 };

    if (!may_bring(commits, branch, options)) {
        tell_left(commits, branch, "left", NULL, options);
        return;
    }
    if (options->dry_run && !branch->broken) {
        tell_brought(commits, branch, options);
        return;
    }
    if (commits_bring(commits, branch, &err) < 0) {
        tell_left(commits, branch, "REFUSED", &err, options);
        *clean = false;
        return;
    }
    tell_brought(commits, branch, options);
}

/* What steers git outside of the workspace is as little brought home as inside. */
static void refuse_outside(const struct changed *changed, const struct run_options *options, bool *clean)
{
    autooutside struct outside outside = { .layer = MERGED_NONE };
    autotext struct text out = TEXT_NONE;
    size_t steering = 0;
    struct error err;

    if (outside_read(changed, &outside, &err) < 0) {
        say_warning("%s", err.text);
        *clean = false;
        return;
    }
    (void)outside_describe(&outside, "REFUSED  ", &out, &steering);
    fputs(text_string(&out), place_for(options));
    *clean = *clean && !steering;
}

int commits_apply(const struct changed *changed, const struct run_options *options, bool *clean,
                  struct error *err)
{
    autoclose int dir = -1;
    autocommits struct commits commits = COMMITS_NONE;

    refuse_outside(changed, options, clean);
    if (options->no_commits || options->to || (!changed->all && !options->commits))
        return 0;
    dir = kept_open(&changed->which.all, changed->kept, err);
    if (dir < 0)
        return -1;
    if (!options->dry_run && store_hold(dir, HOLD_MS) < 0)
        return error_set(err, ERROR_REFUSED, "somebody else is at work on sandbox %.12s", changed->kept->id);
    if (find(changed, dir, &commits, err) < 0)
        return error_while(err, "the commits were not looked at");
    if (commits.branches.len && !options->yes && !options->dry_run && !isatty(STDIN_FILENO))
        return error_set(err, ERROR_INVALID,
                         "there is nobody to ask about the commits; say --yes or --no-commits");
    for (size_t i = 0; i < commits.branches.len; i++)
        bring(&commits, &commits.branches.items[i], options, clean);
    return 0;
}
