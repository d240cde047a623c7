#include "cli/rm.h"

#include "base/error.h"
#include "cli/staying.h"

#include <poll.h>
#include <stddef.h>
#include <stdio.h>

const struct option_row options_of_rm[] = {
    { "all", 'a', NULL, "Every sandbox that there is", OPTION_BOOL, offsetof(struct run_options, all) },
    { "force", 'f', NULL, "A sandbox that is not there is no error, and one that stays is stopped first",
      OPTION_BOOL, offsetof(struct run_options, force) },
    { NULL },
};

/* One whose record cannot be read may have a keeper all the same. */
static bool may_run(const struct kept *kept)
{
    return kept->state == KEPT_BROKEN || (kept_is_alive(kept) && kept->record.stays);
}

/* What is there is read anew for every word: the one before may have been the same sandbox.  One that is about
 * to end by itself has no door any more, and is waited for. */
static int find_stopped(const char *word, bool force, struct which *which, const struct kept **out,
                        struct error *err)
{
    enum { PATIENCE_MS = 10000, BEAT_MS = 10 };
    struct error why;

    for (int waited = 0;; waited += BEAT_MS) {
        which_free(which);
        if (which_read_for(which, word, err) < 0)
            return -1;
        *out = which_sandbox(which, word, err);
        if (!*out || !force || !may_run(*out))
            return *out ? 0 : -1;

        bool stopped = staying_discard(which, *out, &why) == 0;

        if (!stopped && (*out)->state == KEPT_BROKEN)
            return 0;
        if (!stopped && waited >= PATIENCE_MS) {
            *err = why;
            return -1;
        }
        if (!stopped)
            poll(NULL, 0, BEAT_MS);
    }
}

static int remove_one(const char *word, const void *owner, struct error *err)
{
    autowhich struct which which = WHICH_NONE;
    const struct run_options *options = owner;
    const struct kept *kept = NULL;

    if (find_stopped(word, options->force, &which, &kept, err) < 0)
        return options->force && err->kind == ERROR_MISSING ? 0 : -1;
    if (kept_remove(&which.all, kept, err) < 0)
        return -1;
    printf("%s\n", kept->id);
    return 0;
}

/* Somebody may be about to start it, who has its lock and no door yet. */
int rm_forced(const char *id, struct error *err)
{
    enum { PATIENCE_MS = 10000, BEAT_MS = 10 };

    for (int waited = 0;; waited += BEAT_MS) {
        autowhich struct which which = WHICH_NONE;
        const struct kept *kept = NULL;

        if (find_stopped(id, true, &which, &kept, err) < 0)
            return err->kind == ERROR_MISSING ? 0 : -1;
        if (kept_remove(&which.all, kept, err) == 0)
            return 0;
        if (err->kind != ERROR_REFUSED || waited >= PATIENCE_MS)
            return err->kind == ERROR_MISSING ? 0 : -1;
        poll(NULL, 0, BEAT_MS);
    }
}

/* One that is gone when it is its turn is what was asked for. */
static int remove_listed(const char *id, const void *owner, struct error *err)
{
    return remove_one(id, owner, err) < 0 && err->kind != ERROR_MISSING ? -1 : 0;
}

static int remove_all(const struct options *options, struct error *err)
{
    autowhich struct which which = WHICH_NONE;
    autostrings struct strings ids = STRINGS_NONE;

    if (options->words.len)
        return error_set(err, ERROR_INVALID, "`cove rm --all` takes no sandbox");
    if (which_read(&which, err) < 0)
        return -1;
    for (size_t i = 0; i < which.all.len; i++)
        strings_add(&ids, which.all.items[i].id);
    return ids.len ? which_each(&ids, "rm", remove_listed, &options->run, err) : 0;
}

int cli_rm(struct options *options, struct error *err)
{
    if (options->run.all)
        return remove_all(options, err);
    return which_each(&options->words, "rm", remove_one, &options->run, err);
}
