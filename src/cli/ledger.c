#include "cli/ledger.h"

#include "base/error.h"
#include "base/own.h"
#include "changes/review.h"
#include "cli/changed.h"
#include "cli/commits.h"
#include "store/store.h"

#include <time.h>

enum { HOLD_MS = 2000 };

/* The sandbox's directory, held, and its record as it is on disk: ours in memory may name another place. */
static int open_record(const struct changed *changed, struct record *out, struct error *err)
{
    autoclose int dir = kept_open(&changed->which.all, changed->kept, err);

    if (dir < 0)
        return -1;
    if (store_hold(dir, HOLD_MS) < 0)
        return error_set(err, ERROR_REFUSED, "somebody else is at work on sandbox %.12s", changed->kept->id);
    if (record_read(dir, changed->kept->id, out, err) < 0)
        return -1;
    return steal_fd(&dir);
}

int ledger_settle(const struct changed *changed, const struct strings *paths, struct error *err)
{
    autorecord struct record record = RECORD_NONE;
    autoclose int dir = open_record(changed, &record, err);

    if (dir < 0)
        return -1;
    strings_copy(&record.settled, paths);
    strings_sort(&record.settled);
    return record_write(dir, &record, err);
}

/* 1: nothing is left; 0: something is. */
static int is_all_home(const struct changed *changed, struct error *err)
{
    char *id = (char *)(uintptr_t)changed->kept->id;
    struct strings words = { .items = &id, .len = 1 };
    struct changed_wish wish = { .words = &words };
    autochanged struct changed again = CHANGED_NONE;
    autoreview struct review review = REVIEW_NONE;

    if (changed_read(&wish, &again, err) < 0)
        return -1;
    changed_review(&again, false, &review);
    for (size_t i = 0; i < again.changes.len; i++)
        if (!review.items[i].folded)
            return 0;
    return commits_are_home(&again, review.elsewhere);
}

int ledger_note_applied(const struct changed *changed, struct error *err)
{
    autorecord struct record record = RECORD_NONE;
    autoclose int dir = -1;
    int home = is_all_home(changed, err);

    if (home <= 0)
        return home;
    dir = open_record(changed, &record, err);
    if (dir < 0)
        return -1;
    if (kept_has_changed_grants(dir, &record) || record.applied.tv_sec)
        return 0;
    clock_gettime(CLOCK_REALTIME, &record.applied);
    return record_write(dir, &record, err);
}
