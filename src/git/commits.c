#include "git/commits.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "git/land.h"
#include "keeper/kept.h"
#include "keeper/record.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    BRANCHES_MAX = 200,
    SUBJECT_MAX = 300,
    LOG_BYTES_MAX = 64 << 20,
    HEAD_MAX = 1024,
    WORKTREES_MAX = 1000,
    NAMES_TRIED = 100,
};

#define MAIL_BYTES_MAX (1ULL << 30)

static void clear(struct branch *branch)
{
    for (size_t i = 0; i < branch->names.len; i++) {
        free(branch->names.items[i].inside);
        free(branch->names.items[i].home);
        free(branch->names.items[i].in_way);
    }
    for (size_t i = 0; i < branch->commits.len; i++)
        free(branch->commits.items[i].subject);
    free(branch->names.items);
    free(branch->commits.items);
    carried_free(&branch->carried);
}

void commits_free(struct commits *commits)
{
    for (size_t i = 0; i < commits->branches.len; i++)
        clear(&commits->branches.items[i]);
    free(commits->branches.items);
    for (size_t i = 0; commits->sides && i < commits->repositories.len; i++) {
        refs_free(&commits->sides[i].refs);
        strings_free(&commits->sides[i].hashes);
        strings_free(&commits->sides[i].mine);
        shadow_remove(&commits->sides[i].shadow);
    }
    free(commits->sides);
    free(commits->sandbox);
    repositories_free(&commits->repositories);
    *commits = COMMITS_NONE;
}

/* --- what the owner has --------------------------------------------------------------------- */

/* The commit that HEAD names itself, or, if `refs` are given, through a branch; false if there is none. */
static bool read_head(const struct merged *git, const char *dir, const struct refs *refs, size_t digits,
                      char out[HASH_MAX + 1])
{
    static const char symbolic[] = "ref: ";
    automerged struct merged at = MERGED_NONE;
    autofree char *bytes = NULL;
    const struct ref *ref;
    size_t len;

    if (!merged_enter(git, dir, &at) || merged_read(&at, "HEAD", HEAD_MAX, &bytes, &len) != MERGED_FILE)
        return false;
    if (!refs || !text_starts(bytes, symbolic))
        return ref_parse(bytes, len, digits, out);
    bytes[strcspn(bytes, "\r\n")] = '\0';
    ref = refs_find(refs, bytes + strlen(symbolic));
    if (ref)
        memcpy(out, ref->hash, sizeof ref->hash);
    return ref;
}

static void add_heads(const struct repository *repository, const struct refs *refs, struct strings *out)
{
    automerged struct merged worktrees = MERGED_NONE;
    autostrings struct strings names = STRINGS_NONE;
    char hash[HASH_MAX + 1];

    if (read_head(&repository->own, "", refs, repository->digits, hash))
        strings_add(out, hash);
    if (!merged_enter(&repository->own, "worktrees", &worktrees) ||
        !merged_list(&worktrees, WORKTREES_MAX, &names))
        return;
    for (size_t i = 0; i < names.len; i++)
        if (read_head(&worktrees, names.items[i], refs, repository->digits, hash))
            strings_add(out, hash);
}

static int read_owners(const struct repository *repository, struct commits_side *side, struct error *err)
{
    if (refs_read(&repository->own, "refs", repository->digits, &side->refs, err) < 0)
        return error_while(err, "read the references of %.200s", repository->path);
    add_heads(repository, &side->refs, &side->mine);
    strings_copy(&side->hashes, &side->mine);
    for (size_t i = 0; i < side->refs.len; i++) {
        const struct ref *ref = &side->refs.items[i];

        strings_add(&side->hashes, ref->hash);
        if (text_starts(ref->name, "refs/heads/") && !text_starts(ref->name, "refs/heads/cove/"))
            strings_add(&side->mine, ref->hash);
    }
    strings_sort(&side->hashes);
    strings_sort(&side->mine);
    return 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool has_hash(const struct commits_side *side, const char *hash)
{
    return side->hashes.len && bsearch(&hash, side->hashes.items, side->hashes.len, sizeof hash, by_text);
}

/* --- what the sandbox has beyond that --------------------------------------------------------- */

static struct branch *find_tip(struct commits *commits, size_t repository, const char *hash, size_t len)
{
    for (size_t i = 0; i < commits->branches.len; i++) {
        struct branch *branch = &commits->branches.items[i];

        if (branch->repository == repository && strlen(branch->hash) == len &&
            strncmp(branch->hash, hash, len) == 0)
            return branch;
    }
    return NULL;
}

static size_t count_names(const struct commits *commits)
{
    size_t count = 0;

    for (size_t i = 0; i < commits->branches.len; i++)
        count += commits->branches.items[i].names.len;
    return count;
}

static int add_branch(struct commits *commits, size_t repository, const char *name, const char *hash,
                      struct error *err)
{
    struct branch *branch = find_tip(commits, repository, hash, strlen(hash));

    if (count_names(commits) >= BRANCHES_MAX)
        return error_set(err, ERROR_REFUSED, "the sandbox has more than %d branches with commits of its own",
                         BRANCHES_MAX);
    if (!branch) {
        branch = array_add(&commits->branches);
        branch->repository = repository;
        memcpy(branch->hash, hash, sizeof branch->hash);
    }
    array_add(&branch->names)->inside = text_copy(name);
    return 0;
}

static int find_branches(struct commits *commits, size_t index, struct error *err)
{
    const struct repository *repository = &commits->repositories.items[index];
    struct commits_side *side = &commits->sides[index];
    autorefs struct refs theirs = REFS_NONE;
    char head[HASH_MAX + 1] = "";

    side->shadow = SHADOW_NONE;
    if (read_owners(repository, side, err) < 0)
        return -1;
    if (refs_read(&repository->merged, "refs/heads", repository->digits, &theirs, err) < 0)
        return error_while(err, "read the references that the sandbox left");
    commits->odd += theirs.odd > side->refs.odd ? theirs.odd - side->refs.odd : 0;
    for (size_t i = 0; i < theirs.len; i++)
        if (!has_hash(side, theirs.items[i].hash) &&
            add_branch(commits, index, theirs.items[i].name + strlen("refs/heads/"), theirs.items[i].hash,
                       err) < 0)
            return -1;
    if (read_head(&repository->merged, repository->head, NULL, repository->digits, head) &&
        !has_hash(side, head) && !find_tip(commits, index, head, strlen(head)))
        return add_branch(commits, index, "detached", head, err);
    return 0;
}

/* --- names ---------------------------------------------------------------------------------- */

static void set_home(struct branch_name *name, char *home, char *in_way)
{
    free(name->home);
    free(name->in_way);
    name->home = home;
    name->in_way = in_way;
}

/* A reference that is there stays as it is: whoever uses a name twice gets another one.  No number helps
 * against "a" where "a/b" is wanted: then the first name stands, with what is in its way. */
static void choose_home(const struct commits *commits, const struct commits_side *side,
                        struct branch_name *name)
{
    autofree char *plain = ref_plain_name(name->inside);
    autofree char *first = text_format("cove/%s/%s", commits->sandbox, plain);
    autofree char *wanted = text_format("refs/heads/%s", first);
    const struct ref *in_way = refs_in_way(&side->refs, wanted);

    for (unsigned number = 1; number < NAMES_TRIED; number++) {
        autofree char *home = number > 1 ? text_format("%s-%u", first, number) : text_copy(first);
        autofree char *full = text_format("refs/heads/%s", home);

        if (ref_is_name(full) && !refs_in_way(&side->refs, full)) {
            set_home(name, steal_ptr(&home), NULL);
            return;
        }
    }
    set_home(name, steal_ptr(&first),
             text_copy(in_way ? in_way->name + strlen("refs/heads/") : "the length of the name"));
}

static void choose_homes(const struct commits *commits, struct branch *branch)
{
    for (size_t i = 0; i < branch->names.len; i++)
        choose_home(commits, &commits->sides[branch->repository], &branch->names.items[i]);
}

/* --- asking git ----------------------------------------------------------------------------- */

/* What is left out of everything that git is asked for. */
static char *without(const struct strings *hashes)
{
    struct text lines = TEXT_NONE;

    for (size_t i = 0; i < hashes->len; i++)
        text_addf(&lines, "^%s\n", hashes->items[i]);
    return text_steal(&lines);
}

static int need_shadow(struct commits *commits, size_t index, struct error *err)
{
    struct commits_side *side = &commits->sides[index];
    const struct repository *repository = &commits->repositories.items[index];
    autofree char *known = without(&side->hashes);

    if (side->shadow.git >= 0)
        return 0;
    if (shadow_make(commits->host, repository, &side->shadow, err) < 0 ||
        shadow_add_objects(&side->shadow, repository, err) < 0)
        return -1;
    return shadow_write(&side->shadow, "known", known, strlen(known), err);
}

static const char log_script[] =
    "while read -r tip; do\n"
    "  count=$({ echo $tip; cat known; } | git rev-list --count --stdin) || { echo \"bad $tip\"; continue; }\n"
    "  echo \"tip $tip $count\"\n"
    "  { echo $tip; cat known; } | git log --stdin --no-decorate --no-mailmap --no-color --topo-order \\\n"
    "    --max-count=1000 --format='%H %s'\n"
    "done <tips\n";

static void take_commit(struct branch *branch, const char *line, size_t digits)
{
    struct commit *commit;

    if (branch->commits.len >= COMMITS_SHOWN || strspn(line, "0123456789abcdef") != digits)
        return;
    commit = array_add(&branch->commits);
    memcpy(commit->hash, line, digits);
    commit->subject = text_format("%.*s", SUBJECT_MAX, line[digits] ? line + digits + 1 : "");
}

/* Lines as log_script writes them. */
static void take_log(struct commits *commits, size_t repository, char *text)
{
    size_t digits = commits->repositories.items[repository].digits;
    struct branch *branch = NULL;
    char *rest = NULL;

    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        if (text_starts(line, "tip ") && strlen(line) > 4 + digits) {
            branch = find_tip(commits, repository, line + 4, digits);
            if (branch) {
                branch->broken = false;
                branch->count = strtoull(line + 4 + digits, NULL, 10);
            }
        } else if (branch) {
            take_commit(branch, line, digits);
        }
    }
}

static int list_commits(struct commits *commits, size_t index, struct error *err)
{
    struct commits_side *side = &commits->sides[index];
    autotext struct text tips = TEXT_NONE;

    for (size_t i = 0; i < commits->branches.len; i++)
        if (commits->branches.items[i].repository == index) {
            text_addf(&tips, "%s\n", commits->branches.items[i].hash);
            commits->branches.items[i].broken = true; /* until git says otherwise */
        }
    if (!tips.len)
        return 0;
    if (need_shadow(commits, index, err) < 0 ||
        shadow_write(&side->shadow, "tips", text_string(&tips), tips.len, err) < 0)
        return -1;

    autoclose int out = shadow_file(&side->shadow, "log", err);
    struct shadow_script script = {
        .doing = "listing the commits", .text = log_script, .out = out, .output_most = LOG_BYTES_MAX
    };

    if (out < 0 || shadow_run(&side->shadow, &script, err) < 0)
        return -1;

    size_t len;
    autofree char *text = shadow_read(out, &len, err);

    if (!text)
        return -1;
    for (size_t i = 0; i < len; i++)
        if (!text[i])
            text[i] = ' ';
    take_log(commits, index, text);
    return 0;
}

/* A branch that leads to nothing new is none for us. */
static void drop_known(struct commits *commits)
{
    size_t kept = 0;

    for (size_t i = 0; i < commits->branches.len; i++) {
        struct branch *branch = &commits->branches.items[i];

        if (branch->count || branch->broken) {
            commits->branches.items[kept++] = *branch;
            continue;
        }
        clear(branch);
    }
    commits->branches.len = kept;
}

int commits_find(const struct host *host, int dir, const struct record *record, struct commits *out,
                 struct error *err)
{
    *out = COMMITS_NONE;
    out->host = host;
    out->sandbox = record->name ? text_copy(record->name) : text_format("%.*s", KEPT_ID_SHOWN, record->id);
    if (repositories_find(dir, record, &out->repositories, err) < 0)
        return -1;
    out->sides = memory_zero((out->repositories.len + 1) * sizeof *out->sides);
    for (size_t i = 0; i < out->repositories.len; i++)
        out->sides[i].shadow = SHADOW_NONE;
    for (size_t i = 0; i < out->repositories.len; i++)
        if (find_branches(out, i, err) < 0 || list_commits(out, i, err) < 0)
            return -1;
    drop_known(out);
    for (size_t i = 0; i < out->branches.len; i++)
        choose_homes(out, &out->branches.items[i]);
    return 0;
}

/* --- bringing it home ----------------------------------------------------------------------- */

static int refuse_broken(const struct branch *branch, struct error *err)
{
    return branch->broken ? error_set(err, ERROR_REFUSED, "its objects are not all there, or are none") : 0;
}

static int judge(const struct commits *commits, const struct shadow *shadow, struct branch *branch,
                 struct error *err)
{
    autofree char *mine = without(&commits->sides[branch->repository].mine);
    struct carried carried;

    if (carried_find(shadow, commits->repositories.items[branch->repository].digits, branch->hash, mine,
                     &carried, err) < 0)
        return -1;
    carried_free(&branch->carried);
    branch->carried = carried;
    return 0;
}

int commits_judge(struct commits *commits, struct branch *branch, struct error *err)
{
    if (refuse_broken(branch, err) < 0 || need_shadow(commits, branch->repository, err) < 0)
        return -1;
    return judge(commits, &commits->sides[branch->repository].shadow, branch, err);
}

int commits_pack(struct commits *commits, struct branch *branch, struct parcel *out, struct error *err)
{
    const struct repository *repository = &commits->repositories.items[branch->repository];
    struct commits_side *side = &commits->sides[branch->repository];
    autofree char *known = without(&side->hashes);

    if (refuse_broken(branch, err) < 0 || need_shadow(commits, branch->repository, err) < 0 ||
        parcel_make(&side->shadow, repository, branch->hash, known, out, err) < 0)
        return -1;
    return judge(commits, &out->check, branch, err);
}

static void note_brought(struct commits_side *side, const struct branch *branch, const char *home)
{
    struct ref *ref = array_add(&side->refs);

    ref->name = text_format("refs/heads/%s", home);
    memcpy(ref->hash, branch->hash, sizeof ref->hash);
    strings_add(&side->hashes, branch->hash);
    strings_sort(&side->hashes);
}

int commits_refuse_name(const struct branch_name *name, struct error *err)
{
    return !name->in_way
               ? 0
               : error_set(err, ERROR_REFUSED,
                           "%.200s is in the way of %.200s; rename it (git branch -m) and apply again",
                           name->in_way, name->home);
}

int commits_land(struct commits *commits, struct branch *branch, const struct parcel *parcel,
                 struct branch_name *name, struct error *err)
{
    const struct repository *repository = &commits->repositories.items[branch->repository];
    struct commits_side *side = &commits->sides[branch->repository];

    choose_home(commits, side, name);
    if (commits_refuse_name(name, err) < 0)
        return -1;

    struct landing landing = { .git = repository->own.base,
                               .pack = parcel->pack,
                               .index = parcel->index,
                               .name = parcel->name,
                               .digits = repository->digits,
                               .branch = name->home,
                               .hash = branch->hash };

    if (land(&landing, err) < 0)
        return error_while(err, "lay the commits into %.200s", repository->path);
    note_brought(side, branch, name->home);
    return 0;
}

/* --- as mail -------------------------------------------------------------------------------- */

/* mboxrd: a line of a message that looks like the start of another mail must not be one.  Nor may it look
 * like that of a patch: git am applies a diff that stands in a message, and so do git apply and patch, the last
 * one also if it is indented.  So such lines are marked, and those that git takes for headers; the message and
 * the diff are written apart, because in a whole mail nobody could tell where the message ends. */
static const char mail_script[] =
    "{ echo $1; cat known; } | git rev-list --reverse --topo-order --no-merges --stdin >/tmp/list || exit 1\n"
    "total=$(wc -l </tmp/list) number=0\n"
    "like='^[[:space:]]*(diff |Index:|Prereq:|---|\\+\\+\\+|\\*\\*\\*|@@|From:|Subject:|Date:)'\n"
    "while read -r commit; do\n"
    "  number=$((number + 1)) quoted=0\n"
    "  git diff-tree --root --no-commit-id -p --stat --summary --binary --full-index -M \\\n"
    "    --no-ext-diff --no-textconv $commit >/tmp/diff || exit 1\n"
    "  git log -1 --pretty=mboxrd --encode-email-headers --no-mailmap --no-color -s $commit >/tmp/whole || "
    "exit 1\n"
    "  : >/tmp/mail\n"
    "  if [ -s /tmp/diff ]; then\n"
    "    sed '/^$/q' /tmp/whole | sed \"s|^Subject: \\[PATCH\\]|Subject: [PATCH $number/$total]|\" >/tmp/mail\n"
    "    sed '1,/^$/d' /tmp/whole >/tmp/body\n"
    "    quoted=$(grep -aciE \"$like\" /tmp/body)\n"
    "    { sed -E \"s/$like/> &/I\" /tmp/body; echo ---; cat /tmp/diff; echo; } >>/tmp/mail\n"
    "  fi\n"
    "  echo \"$commit $(wc -c </tmp/mail) $quoted\"\n"
    "  cat /tmp/mail\n"
    "done </tmp/list\n";

int commits_mail(struct commits *commits, const struct branch *branch, struct error *err)
{
    struct commits_side *side = &commits->sides[branch->repository];
    struct shadow_script script = { .doing = "writing the commits as mail",
                                    .text = mail_script,
                                    .words = { branch->hash },
                                    .output_most = MAIL_BYTES_MAX };

    if (branch->broken)
        return error_set(err, ERROR_REFUSED, "the objects of %s are not all there, or are none",
                         branch->names.items[0].home);
    if (need_shadow(commits, branch->repository, err) < 0)
        return -1;

    autoclose int out = shadow_file(&side->shadow, "mail", err);

    script.out = out;
    if (out < 0 || shadow_run(&side->shadow, &script, err) < 0)
        return -1;
    return steal_fd(&out);
}
