#include "cli/verifying.h"

#include "base/digest.h"
#include "base/own.h"
#include "base/text.h"
#include "box/tree.h"
#include "changes/fingerprint.h"
#include "cli/changed.h"
#include "cli/copying.h"
#include "cli/run.h"
#include "store/copytree.h"
#include "store/store.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define COPY "b0"

/* What a verdict is about, taken before and after: the chosen changes, and the tree they go to. */
struct about {
    char changes[DIGEST_TEXT];
    uint64_t tree;
};

static int add_content(struct digest *digest, int upper, const char *path, struct error *err)
{
    autoclose int fd = sys_openat2(upper, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK,
                                   RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
    char buffer[16 << 10];
    ssize_t got = -1;

    while (fd >= 0 && (got = read(fd, buffer, sizeof buffer)) > 0)
        digest_add(digest, buffer, (size_t)got);
    return got < 0 ? error_sys(err, "read %.200s of the sandbox", path) : 0;
}

static int add_change(struct digest *digest, int upper, const struct change *change, struct error *err)
{
    const struct side *new = &change->new;
    autofree char *head = text_format("%d %d %o", (int)change->kind, (int)new->type, (unsigned)new->mode);

    digest_add(digest, change->path, strlen(change->path) + 1);
    digest_add(digest, head, strlen(head) + 1);
    if (new->target)
        digest_add(digest, new->target, strlen(new->target) + 1);
    return new->type == SIDE_FILE && change->kind != CHANGE_REMOVED
               ? add_content(digest, upper, change->path, err)
               : 0;
}

static int look(const struct verifying *verifying, struct about *out, struct error *err)
{
    const struct changes *changes = &verifying->changed->changes;
    struct digest *digest = digest_new();
    int result = fingerprint_tree(verifying->apply.tree, &out->tree, err);

    for (size_t i = 0; result == 0 && i < changes->len; i++)
        if (verifying->wanted(verifying->owner, &changes->items[i]))
            result = add_change(digest, verifying->apply.upper, &changes->items[i], err);
    digest_end(digest, out->changes);
    return result;
}

static bool go_on(void *owner, uint64_t files, uint64_t bytes)
{
    (void)owner, (void)files, (void)bytes;
    return !copying_must_stop();
}

/* What was hidden from the sandbox stays hidden from the command too. */
static const struct strings *hidden(const struct changed *changed)
{
    const struct record_layers *layers = &changed->kept->record.layers;

    for (size_t i = 0; i < layers->len; i++)
        if (strcmp(layers->items[i].why, TREE_WHY_WORKSPACE) == 0)
            return &layers->items[i].hide;
    return NULL;
}

static int lay_out(const struct verifying *verifying, int dir, struct apply_result *results, struct error *err)
{
    struct apply apply = verifying->apply;
    struct copytree copy = { .from = apply.tree, .leave = hidden(verifying->changed), .go_on = go_on };
    autostrings struct strings notes = STRINGS_NONE;
    autoclose int to = -1;

    if (mkdirat(dir, COPY, 0700) < 0 ||
        (to = openat(dir, COPY, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0)
        return error_sys(err, "make a place for a copy of the tree");
    copy.to = to;
    if (copytree_run(&copy, &notes, err) < 0)
        return error_while(err, "copy the tree to verify the changes");
    apply.tree = to;
    apply.only_look = false;
    return apply_changes(&apply, &verifying->changed->changes, verifying->wanted, verifying->owner, results,
                         err);
}

static bool is_whole(const struct apply_result *results, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (results[i].outcome == APPLY_CONFLICT || results[i].outcome == APPLY_REFUSED ||
            results[i].outcome == APPLY_FAILED)
            return false;
    return true;
}

static int judge(const struct verifying *verifying, const char *tree, enum verified *out, struct error *err)
{
    const struct record *record = &verifying->changed->kept->record;
    struct run_on wish = { .workspace = record->workspace,
                           .tree = tree,
                           .image = record->image,
                           .timeout = verifying->timeout,
                           .command = verifying->command };
    int code = 0;

    if (run_on(&wish, &code, err) < 0)
        return error_while(err, "verify the changes");
    *out = code == 0 ? VERIFIED_YES : VERIFIED_NO;
    if (code != 0)
        error_set(err, ERROR_REFUSED, "nothing was brought home: the command of --verify exited with %d", code);
    return 0;
}

/* Whatever happened while the command ran, what is applied must be what it saw. */
static int compare(const struct verifying *verifying, const struct about *before, enum verified *out,
                   struct error *err)
{
    struct about after;

    if (look(verifying, &after, err) < 0)
        return -1;
    if (strcmp(before->changes, after.changes) == 0 && before->tree == after.tree)
        return 0;
    *out = VERIFIED_NO;
    error_set(err, ERROR_REFUSED,
              "nothing was brought home: %s changed while the changes were verified; start again",
              before->tree == after.tree ? "the sandbox" : "the workspace");
    return 0;
}

static int verify_in(const struct verifying *verifying, const char *state, const struct sandbox_dir *dir,
                     struct apply_result *results, enum verified *out, struct error *err)
{
    autofree char *tree = text_format("%s/sandboxes/%s/%s", state, dir->id, COPY);
    struct about before;

    if (look(verifying, &before, err) < 0 || lay_out(verifying, dir->fd, results, err) < 0)
        return -1;
    *out = VERIFIED_NOT_WHOLE;
    if (!is_whole(results, verifying->changed->changes.len))
        return 0;
    if (judge(verifying, tree, out, err) < 0)
        return -1;
    return *out == VERIFIED_YES ? compare(verifying, &before, out, err) : 0;
}

/* A signal waits until nothing is left of the copy. */
int verifying_run(const struct verifying *verifying, struct apply_result *results, enum verified *out,
                  struct error *err)
{
    const char *state = verifying->changed->which.host.state;
    struct sandbox_dir dir = SANDBOX_DIR_NONE;
    struct error ignored;
    sigset_t old;

    run_hold_signals(&old);

    int result = store_create(state, &dir, err);

    if (result == 0)
        result = verify_in(verifying, state, &dir, results, out, err);
    if (dir.fd >= 0)
        (void)store_remove(&dir, &ignored);
    sigprocmask(SIG_SETMASK, &old, NULL);
    return result;
}
