#include "git/commits.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
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

#define PACK_BYTES_MAX (4ULL << 30)
#define INDEX_BYTES_MAX (1ULL << 30)
#define MAIL_BYTES_MAX (1ULL << 30)

void commits_free(struct commits *commits)
{
    for (size_t i = 0; i < commits->branches.len; i++) {
        struct branch *branch = &commits->branches.items[i];

        for (size_t c = 0; c < branch->commits.len; c++)
            free(branch->commits.items[c].subject);
        free(branch->commits.items);
        free(branch->name);
        free(branch->home);
    }
    free(commits->branches.items);
    for (size_t i = 0; commits->sides && i < commits->repositories.len; i++) {
        refs_free(&commits->sides[i].refs);
        strings_free(&commits->sides[i].hashes);
        shadow_remove(&commits->sides[i].shadow);
    }
    free(commits->sides);
    free(commits->sandbox);
    repositories_free(&commits->repositories);
    *commits = COMMITS_NONE;
}

/* --- what the owner has --------------------------------------------------------------------- */

/* The commit that HEAD names itself; false if it names a branch. */
static bool read_head(const struct merged *git, const char *dir, size_t digits, char out[HASH_MAX + 1])
{
    automerged struct merged at = MERGED_NONE;
    autofree char *bytes = NULL;
    size_t len;

    return merged_enter(git, dir, &at) && merged_read(&at, "HEAD", HEAD_MAX, &bytes, &len) == MERGED_FILE &&
           ref_parse(bytes, len, digits, out);
}

static void add_heads(const struct repository *repository, struct strings *out)
{
    automerged struct merged worktrees = MERGED_NONE;
    autostrings struct strings names = STRINGS_NONE;
    char hash[HASH_MAX + 1];

    if (read_head(&repository->own, "", repository->digits, hash))
        strings_add(out, hash);
    if (!merged_enter(&repository->own, "worktrees", &worktrees) ||
        !merged_list(&worktrees, WORKTREES_MAX, &names))
        return;
    for (size_t i = 0; i < names.len; i++)
        if (read_head(&worktrees, names.items[i], repository->digits, hash))
            strings_add(out, hash);
}

static int read_owners(const struct repository *repository, struct commits_side *side, struct error *err)
{
    if (refs_read(&repository->own, "refs", repository->digits, &side->refs, err) < 0)
        return error_while(err, "read the references of %.200s", repository->path);
    for (size_t i = 0; i < side->refs.len; i++)
        strings_add(&side->hashes, side->refs.items[i].hash);
    add_heads(repository, &side->hashes);
    strings_sort(&side->hashes);
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

static int add_branch(struct commits *commits, size_t repository, const char *name, const char *hash,
                      struct error *err)
{
    struct branch *branch;

    if (commits->branches.len >= BRANCHES_MAX)
        return error_set(err, ERROR_REFUSED, "the sandbox has more than %d branches with commits of its own",
                         BRANCHES_MAX);
    branch = array_add(&commits->branches);
    branch->repository = repository;
    branch->name = text_copy(name);
    memcpy(branch->hash, hash, sizeof branch->hash);
    return 0;
}

static bool is_tip(const struct commits *commits, size_t repository, const char *hash)
{
    for (size_t i = 0; i < commits->branches.len; i++)
        if (commits->branches.items[i].repository == repository &&
            strcmp(commits->branches.items[i].hash, hash) == 0)
            return true;
    return false;
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
    if (read_head(&repository->merged, repository->head, repository->digits, head) && !has_hash(side, head) &&
        !is_tip(commits, index, head))
        return add_branch(commits, index, "detached", head, err);
    return 0;
}

/* --- names ---------------------------------------------------------------------------------- */

/* A reference that is there stays as it is: whoever uses a name twice gets another one. */
static int choose_home(const struct commits *commits, const struct commits_side *side, struct branch *branch,
                       struct error *err)
{
    autofree char *plain = ref_plain_name(branch->name);

    for (unsigned number = 1; number < NAMES_TRIED; number++) {
        autofree char *more = number > 1 ? text_format("-%u", number) : text_copy("");
        autofree char *home = text_format("cove/%s/%s%s", commits->sandbox, plain, more);
        autofree char *full = text_format("refs/heads/%s", home);

        if (!ref_is_name(full))
            break;
        if (!refs_are_in_way(&side->refs, full)) {
            free(branch->home);
            branch->home = steal_ptr(&home);
            return 0;
        }
    }
    return error_set(err, ERROR_REFUSED, "there is no name left for cove/%.60s/%.200s; %s", commits->sandbox,
                     plain, "is a branch called cove in the way?");
}

/* --- asking git ----------------------------------------------------------------------------- */

/* What the owner has is left out of everything: the file `known`. */
static int write_known(const struct commits_side *side, const struct shadow *shadow, struct error *err)
{
    autotext struct text known = TEXT_NONE;

    for (size_t i = 0; i < side->hashes.len; i++)
        text_addf(&known, "^%s\n", side->hashes.items[i]);
    return shadow_write(shadow, "known", text_string(&known), known.len, err);
}

static int need_shadow(struct commits *commits, size_t index, struct error *err)
{
    struct commits_side *side = &commits->sides[index];
    const struct repository *repository = &commits->repositories.items[index];

    if (side->shadow.git >= 0)
        return 0;
    if (shadow_make(commits->host, repository, &side->shadow, err) < 0 ||
        shadow_add_objects(&side->shadow, repository, err) < 0)
        return -1;
    return write_known(side, &side->shadow, err);
}

static const char log_script[] =
    "while read -r tip; do\n"
    "  count=$({ echo $tip; cat known; } | git rev-list --count --stdin) || { echo \"bad $tip\"; continue; }\n"
    "  echo \"tip $tip $count\"\n"
    "  { echo $tip; cat known; } | git log --stdin --no-decorate --no-mailmap --no-color --topo-order \\\n"
    "    --max-count=1000 --format='%H %s'\n"
    "done <tips\n";

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

static void take_commit(struct branch *branch, const char *line, size_t digits)
{
    struct commit *commit;

    if (branch->commits.len >= COMMITS_SHOWN || strspn(line, "0123456789abcdef") != digits)
        return;
    commit = array_add(&branch->commits);
    memcpy(commit->hash, line, digits);
    commit->subject = text_format("%.*s", SUBJECT_MAX, line[digits] ? line + digits + 1 : "");
}

/* Two branches may have the same tip: the first one lists the commits. */
static void share_counts(struct commits *commits)
{
    for (size_t i = 0; i < commits->branches.len; i++) {
        struct branch *branch = &commits->branches.items[i];
        const struct branch *first = find_tip(commits, branch->repository, branch->hash, strlen(branch->hash));

        if (first && first != branch) {
            branch->broken = first->broken;
            branch->count = first->count;
        }
    }
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

static char *read_output(int fd, struct error *err)
{
    struct stat status;

    if (fstat(fd, &status) < 0) {
        error_sys(err, "read what git found");
        return NULL;
    }

    autofree char *bytes = memory_zero((size_t)status.st_size + 1);
    size_t len = 0;

    for (ssize_t got; len < (size_t)status.st_size &&
                      (got = pread(fd, bytes + len, (size_t)status.st_size - len, (off_t)len)) > 0;)
        len += (size_t)got;
    for (size_t i = 0; i < len; i++)
        if (!bytes[i])
            bytes[i] = ' ';
    return steal_ptr(&bytes);
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

    autofree char *text = read_output(out, err);

    if (!text)
        return -1;
    take_log(commits, index, text);
    share_counts(commits);
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
        free(branch->name);
        free(branch->home);
        free(branch->commits.items);
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
        if (choose_home(out, &out->sides[out->branches.items[i].repository], &out->branches.items[i], err) < 0)
            return -1;
    return 0;
}

/* --- bringing it home ----------------------------------------------------------------------- */

static const char pack_script[] = "{ echo $1; cat known; } |\n"
                                  "  git pack-objects --revs --stdout -q --threads=1 --delta-base-offset\n";

/* The owner's objects are all it may lean on. */
static const char check_script[] =
    "set -e\n"
    "git index-pack --strict --threads=1 objects/pack/pack-$2.pack >/dev/null\n"
    "[ \"$(git cat-file -t $1)\" = commit ] || { echo 'a branch that leads to no commit' >&2; exit 1; }\n"
    "{ echo $1; cat known; } | git rev-list --objects --quiet --stdin\n"
    "cat objects/pack/pack-$2.idx\n";

/* The files of one branch on their way. */
struct parcel {
    struct shadow check;
    int pack, index;
    char name[HASH_MAX + 1];
};

#define PARCEL_NONE ((struct parcel){ .check = SHADOW_NONE, .pack = -1, .index = -1 })
#define autoparcel __attribute__((cleanup(parcel_free)))

static void parcel_free(struct parcel *parcel)
{
    own_close(&parcel->pack);
    own_close(&parcel->index);
    shadow_remove(&parcel->check);
}

static int make_pack(struct commits *commits, const struct branch *branch, struct parcel *parcel,
                     struct error *err)
{
    const struct repository *repository = &commits->repositories.items[branch->repository];
    struct commits_side *side = &commits->sides[branch->repository];
    struct shadow_script script = { .doing = "packing the commits",
                                    .text = pack_script,
                                    .words = { branch->hash },
                                    .output_most = PACK_BYTES_MAX };

    if (need_shadow(commits, branch->repository, err) < 0 || write_known(side, &side->shadow, err) < 0)
        return -1;
    if (shadow_make(commits->host, repository, &parcel->check, err) < 0 ||
        write_known(side, &parcel->check, err) < 0)
        return -1;
    parcel->pack = shadow_file(&parcel->check, "git/objects/pack/new", err);
    script.out = parcel->pack;
    if (parcel->pack < 0 || shadow_run(&side->shadow, &script, err) < 0)
        return -1;
    return land_name_pack(parcel->pack, repository->digits, parcel->name, err);
}

static int check_pack(const struct branch *branch, struct parcel *parcel, struct error *err)
{
    autofree char *name = text_format("git/objects/pack/pack-%s.pack", parcel->name);
    struct shadow_script script = { .doing = "checking the commits",
                                    .text = check_script,
                                    .words = { branch->hash, parcel->name },
                                    .output_most = INDEX_BYTES_MAX,
                                    .may_write = true };

    if (fchmod(parcel->pack, 0444) < 0 ||
        renameat(parcel->check.dir.fd, "git/objects/pack/new", parcel->check.dir.fd, name) < 0)
        return error_sys(err, "name the pack");
    parcel->index = shadow_file(&parcel->check, "index", err);
    script.out = parcel->index;
    if (parcel->index < 0)
        return -1;
    return shadow_run(&parcel->check, &script, err);
}

static void note_brought(struct commits_side *side, const struct branch *branch)
{
    struct ref *ref = array_add(&side->refs);

    ref->name = text_format("refs/heads/%s", branch->home);
    memcpy(ref->hash, branch->hash, sizeof ref->hash);
    strings_add(&side->hashes, branch->hash);
    strings_sort(&side->hashes);
}

int commits_bring(struct commits *commits, struct branch *branch, struct error *err)
{
    const struct repository *repository = &commits->repositories.items[branch->repository];
    struct commits_side *side = &commits->sides[branch->repository];
    autoparcel struct parcel parcel = PARCEL_NONE;

    if (branch->broken)
        return error_set(err, ERROR_REFUSED, "its objects are not all there, or are none");
    if (make_pack(commits, branch, &parcel, err) < 0 || check_pack(branch, &parcel, err) < 0 ||
        choose_home(commits, side, branch, err) < 0)
        return -1;

    struct landing landing = { .git = repository->own.base,
                               .pack = parcel.pack,
                               .index = parcel.index,
                               .name = parcel.name,
                               .digits = repository->digits,
                               .branch = branch->home,
                               .hash = branch->hash };

    if (land(&landing, err) < 0)
        return error_while(err, "lay the commits into %.200s", repository->path);
    note_brought(side, branch);
    return 0;
}

/* --- as mail -------------------------------------------------------------------------------- */

/* mboxrd: a line of a message that looks like the start of another mail must not be one. */

static const char mail_script[] =
    "{ echo $1; cat known; } | git rev-list --reverse --topo-order --no-merges --stdin >/tmp/list || exit 1\n"
    "total=$(wc -l </tmp/list) number=0\n"
    "while read -r commit; do\n"
    "  number=$((number + 1))\n"
    "  git format-patch --stdout --pretty=mboxrd -1 -N --subject-prefix=\"PATCH $number/$total\" --binary "
    "--full-index \\\n"
    "    --no-ext-diff --no-textconv --no-attach --no-signature --encode-email-headers $commit >/tmp/mail || "
    "exit 1\n"
    "  echo \"$commit $(wc -c </tmp/mail)\"\n"
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
        return error_set(err, ERROR_REFUSED, "the objects of %s are not all there, or are none", branch->home);
    if (need_shadow(commits, branch->repository, err) < 0)
        return -1;

    autoclose int out = shadow_file(&side->shadow, "mail", err);

    script.out = out;
    if (out < 0 || shadow_run(&side->shadow, &script, err) < 0)
        return -1;
    return steal_fd(&out);
}
