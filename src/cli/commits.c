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

enum { SHOWN_MAX = 50, ALLOWS_SHOWN = 5, HASH_SHOWN = 12, HOLD_MS = 2000 };

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
                                     .since = record_since(record),
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

static void add_names(const struct branch *branch, struct text *out)
{
    for (size_t i = 0; i < branch->names.len; i++) {
        text_add(out, i ? ", " : "");
        text_add_inert(out, branch->names.items[i].inside);
    }
}

static void add_title(const struct commits *commits, const struct branch *branch, struct text *out)
{
    if (branch->broken)
        text_add(out, "commits that cannot be read");
    else
        text_addf(out, "%" PRIu64 " commit%s", branch->count, many(branch->count));
    text_add(out, " on ");
    add_names(branch, out);
    add_where(commits, branch, out);
}

/* How many files of the commits can run something, in brackets. */
static void add_classes(const struct carried *carried, struct text *out)
{
    if (carried->len)
        text_addf(out, " [class A: %zu file%s]", carried->len, many(carried->len));
    if (carried->build)
        text_addf(out, " [class B: %" PRIu64 " file%s]", carried->build, many(carried->build));
}

/* One line for each file of class A. */
static void add_carried(const struct carried *carried, const char *prefix, struct text *out)
{
    for (size_t i = 0; i < carried->len && i < SHOWN_MAX; i++) {
        const struct classify_verdict *verdict = &carried->items[i].verdict;

        text_addf(out, "%s  ", prefix);
        text_add_inert(out, carried->items[i].path);
        text_addf(out, " [class A: %s%s%s]\n", verdict->reason, *verdict->part ? ": " : "", verdict->part);
    }
    if (carried->len > SHOWN_MAX)
        text_addf(out, "%s  and %zu more of class A\n", prefix, carried->len - SHOWN_MAX);
}

static void add_branch(const struct commits *commits, const struct branch *branch, const char *prefix,
                       struct text *out)
{
    text_add(out, prefix);
    add_title(commits, branch, out);
    add_classes(&branch->carried, out);
    text_add(out, "\n");
    for (size_t i = 0; i < branch->commits.len && i < SHOWN_MAX; i++) {
        text_addf(out, "%s  %.*s ", prefix, HASH_SHOWN, branch->commits.items[i].hash);
        text_add_inert(out, branch->commits.items[i].subject);
        text_add(out, "\n");
    }
    if (branch->count > SHOWN_MAX)
        text_addf(out, "%s  and %" PRIu64 " more\n", prefix, branch->count - SHOWN_MAX);
    add_carried(&branch->carried, prefix, out);
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
    for (size_t i = 0; i < commits.branches.len; i++) {
        struct branch *branch = &commits.branches.items[i];

        if (!branch->broken && commits_judge(&commits, branch, &err) < 0)
            say_warning("what %s would bring is not known: %s", branch->names.items[0].home, err.text);
        add_branch(&commits, branch, prefix, &rest);
    }
    if (commits.odd)
        text_addf(&rest, "%s%zu reference%s that git would not take\n", prefix, commits.odd, many(commits.odd));
    if (state)
        text_addf(&out, "%sgit's own state: %" PRIu64 " file%s%s\n", prefix, state, many(state),
                  commits.branches.len ? "; the commits:" : ", no commit that you do not have");
    fputs(text_string(&out), stdout);
    fputs(text_string(&rest), stdout);
}

static void add_number(struct node *map, const char *key, uint64_t value)
{
    autofree char *number = text_format("%" PRIu64, value);

    node_add(map, key, NODE_NUMBER, number);
}

static void add_name_node(const struct branch_name *name, struct node *node)
{
    node_add_bytes(node, "branch", name->inside);
    node_add(node, "home", NODE_STRING, name->home);
    if (name->in_way)
        node_add(node, "in_way", NODE_STRING, name->in_way);
}

static void add_carried_node(const struct carried *carried, struct node *node)
{
    struct node *list = node_add(node, "autorun", NODE_LIST, NULL);

    for (size_t i = 0; i < carried->len; i++) {
        struct node *file = node_add(list, NULL, NODE_MAP, NULL);

        node_add_bytes(file, "path", carried->items[i].path);
        node_add(file, "reason", NODE_STRING, carried->items[i].verdict.reason);
        node_add(file, "part", NODE_STRING, carried->items[i].verdict.part);
    }
    add_number(node, "build", carried->build);
    add_number(node, "files", carried->files);
}

static void add_branch_node(struct commits *commits, struct branch *branch, struct node *list)
{
    const struct repository *repository = &commits->repositories.items[branch->repository];
    struct node *node = node_add(list, NULL, NODE_MAP, NULL), *items;
    struct error err = { 0 };

    add_name_node(&branch->names.items[0], node);
    items = node_add(node, "also", NODE_LIST, NULL);
    for (size_t i = 1; i < branch->names.len; i++)
        add_name_node(&branch->names.items[i], node_add(items, NULL, NODE_MAP, NULL));
    node_add(node, "broken", NODE_BOOL, branch->broken ? "true" : "false");
    add_number(node, "count", branch->count);
    node_add(node, "hash", NODE_STRING, branch->hash);
    node_add_bytes(node, "repository", repository->path);
    if (repository->submodule)
        node_add_bytes(node, "submodule", repository->submodule);
    items = node_add(node, "commits", NODE_LIST, NULL);
    for (size_t i = 0; i < branch->commits.len; i++) {
        struct node *commit = node_add(items, NULL, NODE_MAP, NULL);

        node_add(commit, "hash", NODE_STRING, branch->commits.items[i].hash);
        node_add_bytes(commit, "subject", branch->commits.items[i].subject);
    }
    if (commits_judge(commits, branch, &err) < 0)
        node_add(node, "error", NODE_STRING, err.text);
    else
        add_carried_node(&branch->carried, node);
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

struct bringing {
    const struct changed *changed;
    const struct run_options *options;
    const struct strings *autorun; /* paths that were allowed */
    struct node *told;             /* list of branches; NULL: they are printed */
    struct commits commits;
    bool *clean;
};

/* A path of a commit as the changes of the workspace have theirs. */
static char *path_in_workspace(const struct bringing *bringing, const struct branch *branch, const char *path)
{
    const struct repository *repository = &bringing->commits.repositories.items[branch->repository];
    const char *root = bringing->changed->kept->record.workspace, *work = repository->work;

    if (!path_within(work, root) || strcmp(work, root) == 0)
        return text_copy(path);
    return text_format("%s/%s", work + strlen(root) + 1, path);
}

/* Adds the files of class A that nobody allowed.  Whoever names the whole workspace has named nothing. */
static void add_not_allowed(const struct bringing *bringing, const struct branch *branch, struct strings *out)
{
    for (size_t i = 0; i < branch->carried.len; i++) {
        autofree char *path = path_in_workspace(bringing, branch, branch->carried.items[i].path);

        if (strings_have(bringing->autorun, "") || !changed_is_listed(bringing->autorun, path))
            strings_take(out, steal_ptr(&path));
    }
}

static void add_homes(const struct branch *branch, struct text *out)
{
    for (size_t i = 0; i < branch->names.len; i++)
        text_addf(out, "%s%s", i ? ", " : "", branch->names.items[i].home);
}

static bool ask_about(const struct bringing *bringing, const struct branch *branch)
{
    autotext struct text question = TEXT_NONE;

    if (branch->carried.len) {
        add_title(&bringing->commits, branch, &question);
        text_add(&question, ", with what acts by merely being there:\n");
        add_carried(&branch->carried, "", &question);
    }
    text_add(&question, "bring ");
    add_title(&bringing->commits, branch, &question);
    add_classes(&branch->carried, &question);
    text_add(&question, " home as ");
    add_homes(branch, &question);
    text_add(&question, "?");
    return say_ask(text_string(&question));
}

static bool may_bring(const struct bringing *bringing, const struct branch *branch, bool autorun)
{
    const struct run_options *options = bringing->options;

    if (options->dry_run)
        return !autorun;
    if (options->yes && !options->interactive && !autorun)
        return true;
    return ask_about(bringing, branch);
}

static void tell_node(const struct bringing *bringing, const struct branch *branch,
                      const struct branch_name *name, const char *outcome, const char *why)
{
    struct node *node = node_add(bringing->told, NULL, NODE_MAP, NULL);

    add_name_node(name, node);
    add_number(node, "count", branch->count);
    node_add(node, "hash", NODE_STRING, branch->hash);
    node_add_bytes(node, "repository", bringing->commits.repositories.items[branch->repository].path);
    node_add(node, "outcome", NODE_STRING, outcome);
    if (why)
        node_add_bytes(node, "why", why);
    add_carried_node(&branch->carried, node);
}

static void tell_brought(const struct bringing *bringing, const struct branch *branch,
                         const struct branch_name *name)
{
    const struct repository *repository = &bringing->commits.repositories.items[branch->repository];
    bool dry_run = bringing->options->dry_run;
    autotext struct text line = TEXT_NONE;

    if (bringing->told) {
        tell_node(bringing, branch, name, "done", NULL);
        return;
    }
    text_addf(&line, "%-8s %" PRIu64 " commit%s on ", dry_run ? "would" : "done", branch->count,
              many(branch->count));
    text_add_inert(&line, name->inside);
    add_where(&bringing->commits, branch, &line);
    add_classes(&branch->carried, &line);
    text_addf(&line, " -> %s\n", name->home);
    if (!dry_run) {
        text_add(&line, "         git ");
        if (repository->submodule) {
            text_add(&line, "-C ");
            text_add_shell_word(&line, repository->work);
            text_add(&line, " ");
        }
        text_addf(&line, "log -p %s   (look before you merge)\n", name->home);
    }
    fputs(text_string(&line), stdout);
}

static void tell_left(const struct bringing *bringing, const struct branch *branch, bool refused,
                      const char *why)
{
    autotext struct text line = TEXT_NONE;

    for (size_t i = 0; bringing->told && i < branch->names.len; i++)
        tell_node(bringing, branch, &branch->names.items[i], refused ? "refused" : "left", why);
    if (bringing->told)
        return;
    text_addf(&line, "%-8s ", refused ? "REFUSED" : "left");
    add_title(&bringing->commits, branch, &line);
    add_classes(&branch->carried, &line);
    if (why) {
        text_add(&line, ": ");
        text_add_inert(&line, why);
    }
    puts(text_string(&line));
}

static void tell_refused(struct bringing *bringing, const struct branch *branch, const struct error *err)
{
    tell_left(bringing, branch, true, err->text);
    *bringing->clean = false;
}

static void leave(const struct bringing *bringing, const struct branch *branch, const struct strings *autorun)
{
    autotext struct text why = TEXT_NONE;

    if (autorun->len)
        text_addf(&why, "%s%s by merely being there; to take %s:", autorun->items[0],
                  autorun->len == 1 ? " acts" : " and others act", autorun->len == 1 ? "it" : "them");
    for (size_t i = 0; i < autorun->len && i < ALLOWS_SHOWN; i++) {
        text_add(&why, " --allow-autorun ");
        text_add_shell_word(&why, autorun->items[i]);
    }
    if (autorun->len > ALLOWS_SHOWN)
        text_add(&why, " and so on, `cove diff` lists them");
    tell_left(bringing, branch, false, autorun->len ? text_string(&why) : NULL);
}

static int land_one(struct bringing *bringing, struct branch *branch, const struct parcel *parcel,
                    struct branch_name *name, struct error *err)
{
    return bringing->options->dry_run ? commits_refuse_name(name, err)
                                      : commits_land(&bringing->commits, branch, parcel, name, err);
}

static void land_all(struct bringing *bringing, struct branch *branch, const struct parcel *parcel)
{
    for (size_t i = 0; i < branch->names.len; i++) {
        struct branch_name *name = &branch->names.items[i];
        struct error err = { 0 };

        if (land_one(bringing, branch, parcel, name, &err) < 0)
            tell_refused(bringing, branch, &err);
        else
            tell_brought(bringing, branch, name);
    }
}

/* Only what was packed and checked is judged and asked for, so that this is what lands. */
static void bring(struct bringing *bringing, struct branch *branch)
{
    autoparcel struct parcel parcel = PARCEL_NONE;
    struct error err = { 0 };

    if ((bringing->options->dry_run ? commits_judge(&bringing->commits, branch, &err)
                                    : commits_pack(&bringing->commits, branch, &parcel, &err)) < 0) {
        tell_refused(bringing, branch, &err);
        return;
    }

    autostrings struct strings autorun = STRINGS_NONE;

    add_not_allowed(bringing, branch, &autorun);
    if (may_bring(bringing, branch, autorun.len))
        land_all(bringing, branch, &parcel);
    else
        leave(bringing, branch, &autorun);
}

/* What steers git outside of the workspace is as little brought home as inside. */
static void refuse_outside(const struct changed *changed, const struct node *told, bool *clean)
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
    fputs(text_string(&out), told ? stderr : stdout); /* where JSON is, there is nothing else */
    *clean = *clean && !steering;
}

static void bringing_free(struct bringing *bringing)
{
    commits_free(&bringing->commits);
}

int commits_apply(const struct changed *changed, const struct commits_wish *wish, bool *clean,
                  struct error *err)
{
    autoclose int dir = -1;
    const struct run_options *options = wish->options;
    __attribute__((cleanup(bringing_free))) struct bringing bringing = { .changed = changed,
                                                                         .options = options,
                                                                         .autorun = wish->autorun,
                                                                         .commits = COMMITS_NONE,
                                                                         .clean = clean };
    const struct commits *commits = &bringing.commits;

    refuse_outside(changed, wish->told, clean);
    if (options->no_commits || options->to || (!changed->all && !options->commits))
        return 0;
    dir = kept_open(&changed->which.all, changed->kept, err);
    if (dir < 0)
        return -1;
    if (!options->dry_run && store_hold(dir, HOLD_MS) < 0)
        return error_set(err, ERROR_REFUSED, "somebody else is at work on sandbox %.12s", changed->kept->id);
    if (find(changed, dir, &bringing.commits, err) < 0)
        return error_while(err, "the commits were not looked at");
    if (commits->branches.len && !options->yes && !options->dry_run && !isatty(STDIN_FILENO))
        return error_set(err, ERROR_INVALID,
                         "there is nobody to ask about the commits; say --yes or --no-commits");
    if (wish->told)
        bringing.told = node_add(node_add(wish->told, "git", NODE_MAP, NULL), "branches", NODE_LIST, NULL);
    if (options->only_commits && !commits->branches.len && !wish->told)
        say_note("the sandbox has no commit that you do not have");
    for (size_t i = 0; i < commits->branches.len; i++)
        bring(&bringing, &commits->branches.items[i]);
    return 0;
}
