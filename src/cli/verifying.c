#include "cli/verifying.h"

#include "base/memory.h"
#include "base/own.h"
#include "base/text.h"
#include "box/tree.h"
#include "changes/digest.h"
#include "changes/fingerprint.h"
#include "cli/changed.h"
#include "cli/run.h"
#include "keeper/held.h"
#include "store/copytree.h"
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define COPY "b0"

static bool go_on(void *owner, uint64_t files, uint64_t bytes)
{
    (void)owner, (void)files, (void)bytes;
    return !held_waits();
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

/* While the command ran, what it judged must have stayed as it was. */
static const char *what_changed(const struct verifying *verifying, uint64_t before, uint64_t after)
{
    const struct changes *changes = &verifying->changed->changes;
    autofree struct digest *now = memory_zero((changes->len + 1) * sizeof *now);

    if (before != after)
        return "the workspace";
    digest_contents(verifying->apply.upper, changes, now);
    for (size_t i = 0; i < changes->len; i++)
        if (verifying->wanted(verifying->owner, &changes->items[i]) &&
            !digest_equal(&now[i], &verifying->apply.contents[i]))
            return "the sandbox";
    return NULL;
}

static int verify_in(const struct verifying *verifying, const char *state, const struct sandbox_dir *dir,
                     struct apply_result *results, enum verified *out, struct error *err)
{
    autofree char *tree = text_format("%s/sandboxes/%s/%s", state, dir->id, COPY);
    uint64_t before, after;

    if (fingerprint_tree(verifying->apply.tree, &before, err) < 0 ||
        lay_out(verifying, dir->fd, results, err) < 0)
        return -1;
    *out = VERIFIED_NOT_WHOLE;
    if (!is_whole(results, verifying->changed->changes.len))
        return 0;
    if (judge(verifying, tree, out, err) < 0 || fingerprint_tree(verifying->apply.tree, &after, err) < 0)
        return -1;

    const char *changed = *out == VERIFIED_YES ? what_changed(verifying, before, after) : NULL;

    if (changed) {
        *out = VERIFIED_NO;
        error_set(err, ERROR_REFUSED,
                  "nothing was brought home: %s changed while the changes were verified; start again", changed);
    }
    return 0;
}

/* A signal waits until nothing is left of the copy. */
int verifying_run(const struct verifying *verifying, struct apply_result *results, enum verified *out,
                  struct error *err)
{
    const char *state = verifying->changed->which.host.state;
    struct sandbox_dir dir = SANDBOX_DIR_NONE;
    struct error ignored;
    sigset_t old;

    held_begin(&old);

    int result = store_create(state, &dir, err);

    if (result == 0)
        result = verify_in(verifying, state, &dir, results, out, err);
    if (dir.fd >= 0)
        (void)store_remove(&dir, &ignored);
    sigprocmask(SIG_SETMASK, &old, NULL);
    return result;
}
