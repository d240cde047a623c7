#include "cli/point.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "cli/options.h"
#include "cli/staying.h"
#include "keeper/snapshots.h"
#include "keeper/states.h"
#include "keeper/still.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_number(const char *word)
{
    return *word && strlen(word) < 19 && !word[strspn(word, "0123456789")];
}

char *point_split(char *word)
{
    char *at = strchr(word, '@');

    if (at)
        *at++ = '\0';
    return at;
}

int point_take_step(struct options *options, struct error *err)
{
    char *word = options->words.len ? options->words.items[0] : NULL, *at = word ? strchr(word, '@') : NULL;

    if (!at || !is_number(at + 1))
        return 0;

    autofree char *id = text_format("%.*s", (int)(at - word), word);

    if (!record_is_name(id))
        return 0;
    if (options->run.step)
        return error_set(err, ERROR_INVALID, "%.100s names a step, and --step too", word);
    options->run.step = point_split(word);
    return 0;
}

static int check(const struct kept *kept, struct error *err)
{
    if (kept->state == KEPT_BROKEN) {
        *err = kept->problem;
        return -1;
    }
    if (kept->record.stays && !kept->record.no_checkpoints)
        return 0;
    error_set(err, ERROR_REFUSED, "sandbox %s was made %s", kept_word(kept).text,
              kept->record.stays ? "without checkpoints" : "by `cove run`, and has no checkpoints");
    return error_hint(err, "one of `cove create` has them%s",
                      kept->record.stays ? " unless told otherwise" : "");
}

/* The checkpoint of a step that has just ended comes some milliseconds after its end was told. */
static int find_step(const struct which *which, const struct kept *kept, uint64_t step, struct point *out,
                     struct error *err)
{
    enum { PATIENCE_MS = 3000, BEAT_MS = 10 };
    autoclose int dir = kept_open(&which->all, kept, err);

    if (dir < 0)
        return -1;
    for (int waited = 0;; waited += BEAT_MS) {
        autostates struct states states = STATES_NONE;

        if (states_read(dir, &states, err) < 0)
            return -1;
        out->step = step;
        if (states_find(&states, step, out->layer, err) == 0)
            return 0;
        if (!kept_is_alive(kept) || states_has(&states, step) || step > states.last || waited >= PATIENCE_MS)
            return -1;
        poll(NULL, 0, BEAT_MS);
    }
}

static int find_snapshot(const struct which *which, const struct kept *kept, const char *name,
                         struct point *out, struct error *err)
{
    autosnapshot struct snapshot snapshot = SNAPSHOT_NONE;

    if (snapshot_read(which->host.state, name, &snapshot, err) < 0)
        return -1;
    if (strcmp(snapshot.record.id, kept->id) != 0)
        return error_set(err, ERROR_REFUSED, "the snapshot %s is one of sandbox %.*s", name, KEPT_ID_SHOWN,
                         snapshot.record.id);
    memcpy(out->layer, snapshot.layer, sizeof out->layer);
    out->step = snapshot.step;
    return 0;
}

int point_find(const struct which *which, const struct kept *kept, const char *word, struct point *out,
               struct error *err)
{
    if (check(kept, err) < 0)
        return -1;
    return is_number(word) ? find_step(which, kept, strtoull(word, NULL, 10), out, err)
                           : find_snapshot(which, kept, word, out, err);
}

int point_before(const struct which *which, const struct kept *kept, uint64_t count, struct point *out,
                 struct error *err)
{
    autostates struct states states = STATES_NONE;
    autoclose int dir = kept_open(&which->all, kept, err);

    if (dir < 0 || check(kept, err) < 0 || states_read(dir, &states, err) < 0)
        return -1;
    if (!count)
        return error_set(err, ERROR_INVALID, "to undo 0 steps is nothing");
    return states_before(&states, count, &out->step, &out->undone, out->layer, err);
}

int point_begin(const struct which *which, const struct kept *kept, uint64_t step, struct point *out,
                struct error *err)
{
    autostates struct states states = STATES_NONE;
    autoclose int dir = kept_open(&which->all, kept, err);

    if (dir < 0 || check(kept, err) < 0 || states_read(dir, &states, err) < 0)
        return -1;
    return states_begin(&states, step, &out->step, out->layer, err);
}

int point_now(const struct which *which, const struct kept *kept, struct point *out, struct error *err)
{
    struct sandbox_dir dir = SANDBOX_DIR_NONE;
    struct still still = { .state = which->host.state, .record = &kept->record, .dir = &dir };

    out->step = 0;
    if (check(kept, err) < 0)
        return -1;
    if (kept_is_alive(kept))
        return staying_checkpoint(which, kept, out->layer, err);
    if (staying_open(which, kept, &dir, err) < 0)
        return -1;

    int result = still_checkpoint(&still, out->layer, err);

    own_close(&dir.fd);
    own_close(&dir.parent);
    return result;
}

static int turn_still(const struct which *which, const struct kept *kept, const struct point *point,
                      struct error *err)
{
    struct sandbox_dir dir = SANDBOX_DIR_NONE;
    struct still still = { .state = which->host.state, .record = &kept->record, .dir = &dir };

    if (staying_open(which, kept, &dir, err) < 0)
        return -1;

    int result = still_turn(&still, point->layer, point->step, err);

    own_close(&dir.fd);
    own_close(&dir.parent);
    return result;
}

int point_turn(const struct which *which, const struct kept *kept, const struct point *point, struct error *err)
{
    return kept_is_alive(kept) ? staying_rollback(which, kept, point->layer, point->step, err)
                               : turn_still(which, kept, point, err);
}

int point_undo(const struct which *which, const struct kept *kept, const struct point *point, struct error *err)
{
    return kept_is_alive(kept) ? staying_undo(which, kept, point->layer, point->step, point->undone, err)
                               : turn_still(which, kept, point, err);
}
