#include "keeper/live_bring.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/own.h"
#include "base/text.h"
#include "changes/digest.h"
#include "changes/marks.h"
#include "changes/scan.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum {
    FILE_MAX = 256 << 20, /* a larger file stays in the layer: it would keep all others waiting */
    RESTS_MAX = 200,      /* listed; the others are counted */
    REST_FACTOR = 8,      /* a path is brought during a ninth of the time at most */
};

/* What was found out about one change on its way. */
struct note {
    enum { NOTE_TAKE, NOTE_WAITS, NOTE_OWNERS, NOTE_LARGE, NOTE_AGAIN, NOTE_STOPPED, NOTE_LATER } what;
    const char *why;
    struct known_mark mark; /* the state that was copied */
    bool copied;
};

struct batch {
    struct bring *bring;
    struct changes changes;
    struct note *notes;
    struct apply_result *results;
    size_t asked;
    bool patient;
    apply_wanted *only; /* NULL: all */
};

static int open_at(int root, const char *path)
{
    return sys_open_beneath(root, path, O_PATH);
}

/* Nothing there: a mark of zero. */
static struct known_mark mark_at(const struct bring *bring, const char *path)
{
    autoclose int fd = open_at(bring->sides.upper, path);
    struct stat status;

    if (fd < 0 || fstat(fd, &status) < 0)
        return (struct known_mark){ 0 };
    return known_mark_of(&status);
}

/* The clock of files ticks every few milliseconds: what was just written may be written again and look the
 * same.  Such a state is not remembered, so that it is looked at once more. */
static bool is_fresh(struct timespec changed)
{
    enum { TICKS_NS = 20000000 };
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)(now.tv_sec - changed.tv_sec) * 1000000000 + now.tv_nsec - changed.tv_nsec < TICKS_NS;
}

static struct known_mark lasting(struct known_mark mark)
{
    const struct known_mark none = { 0 };

    return is_fresh(mark.ctime) ? none : mark;
}

bool bring_is_due(const struct bring *bring, const struct known *known)
{
    struct known_mark now = mark_at(bring, known->path);

    return !known_is_marked(&now, &known->seen);
}

bool bring_replaces(const struct bring *bring, const char *path)
{
    autoclose int made = sys_open_beneath(bring->sides.upper, path, O_PATH | O_DIRECTORY);
    autoclose int there = made < 0 ? -1 : sys_open_beneath(bring->sides.base, path, O_PATH | O_DIRECTORY);

    return there >= 0 && mark_is_opaque(bring->sides.marks, made, ".");
}

/* Before it is there: so nobody who stops us in between makes it look like the owner's.  What was there until
 * now stays noted too. */
static void note_print(struct bring *bring, const char *path, const struct print *print)
{
    struct known *known = known_add(&bring->known, path);

    if (!known)
        return;
    if (!known->place)
        known->place = ++bring->places;
    known->second = !known->second;
    prints_note(bring->prints, (known->place - 1) * 2 + known->second, print);
}

/* --- judging --- */

static bool is_wanted(void *owner, const struct change *change)
{
    struct batch *batch = owner;
    struct bring *bring = batch->bring;
    struct note *note = &batch->notes[batch->asked++];

    if (batch->only && !batch->only(NULL, change))
        note->what = NOTE_LATER;
    else if (judge_is_owners(&bring->sides, known_find(&bring->known, change->path), change))
        *note = (struct note){ .what = NOTE_OWNERS, .why = "you changed it on the host meanwhile" };
    else if (change->new.type == SIDE_FILE && change->new.size > FILE_MAX)
        *note = (struct note){ .what = NOTE_LARGE, .why = "it is too large to be brought while it is written" };
    else if ((note->why = judge_waits(&bring->sides, change, -1)))
        note->what = NOTE_WAITS;
    return note->what == NOTE_TAKE;
}

static bool has_same_bytes(int one, int other)
{
    struct digest a, b;

    return digest_file(one, &a) == 0 && digest_file(other, &b) == 0 && digest_equal(&a, &b);
}

/* Whether nobody has written to the original since it was looked at.  If that was just before, its times
 * say nothing, and it is read again. */
static bool is_still(const struct change *change, int original, int copy, struct stat *status)
{
    if (fstat(original, status) < 0 || (uint64_t)status->st_size != change->new.size ||
        status->st_mtim.tv_sec != change->new.mtime.tv_sec ||
        status->st_mtim.tv_nsec != change->new.mtime.tv_nsec)
        return false;
    return !is_fresh(status->st_ctim) || has_same_bytes(original, copy);
}

/* One that is never still, a log, is brought all the same, but as it was at one instant: what was copied is
 * still how it begins.  Otherwise it would be half of one state and half of another. */
static bool is_how_it_begins(int original, int copy)
{
    enum { CHUNK = 8192 };
    char one[CHUNK], other[CHUNK];
    ssize_t got;

    for (off_t at = 0; (got = content_read(copy, at, one, sizeof one)) > 0; at += got)
        if (content_read(original, at, other, (size_t)got) != got || memcmp(one, other, (size_t)got) != 0)
            return false;
    return got == 0;
}

/* Here the bytes are those that the host will have: the last word. */
static bool is_accepted(void *owner, const struct change *change, int original, int copy)
{
    struct batch *batch = owner;
    struct bring *bring = batch->bring;
    struct note *note = &batch->notes[change - batch->changes.items];
    struct stat status = { 0 };
    bool still = original < 0 || is_still(change, original, copy, &status);

    note->copied = original >= 0;
    if (note->copied && still)
        note->mark = lasting(known_mark_of(&status));
    if (bring->stop && bring->stop(bring->owner))
        note->what = NOTE_STOPPED;
    else if (!still && (batch->patient || !is_how_it_begins(original, copy)))
        note->what = NOTE_AGAIN;
    else if ((note->why = judge_waits(&bring->sides, change, copy)))
        note->what = NOTE_WAITS;
    if (note->what == NOTE_TAKE && note->copied && fstat(copy, &status) == 0) {
        struct print print = print_of(&status);

        note_print(bring, change->path, &print);
    }
    return note->what == NOTE_TAKE;
}

/* --- remembering --- */

static void settle_done(struct bring *bring, struct known *known, const struct change *change,
                        const struct apply_result *result)
{
    known->state = change->kind == CHANGE_REMOVED ? KNOWN_GONE : KNOWN_OURS;
    known->put = result->put;
    known->based = known->state == KNOWN_OURS;
    bring->brought += !known->brought;
    known->brought = true;
}

/* Both sides are the same. */
static void settle_as(struct known *known, bool there)
{
    known->based = there;
    if (!there)
        known->state = KNOWN_GONE;
    else if (known->state != KNOWN_OURS)
        known->state = KNOWN_SAME;
}

/* Without one it is its directory's turn first, which may come by another way; then it is looked at again. */
static bool has_directory(const struct bring *bring, const char *path)
{
    const char *slash = strrchr(path, '/');
    autofree char *around = slash ? text_format("%.*s", (int)(slash - path), path) : text_copy(".");
    autoclose int there = open_at(bring->sides.base, around);

    return there >= 0;
}

static void settle(const struct batch *batch, size_t i, const char *top, const struct known_mark *before)
{
    const struct change *change = &batch->changes.items[i];
    const struct apply_result *result = &batch->results[i];
    struct known *known = known_add(&batch->bring->known, change->path);

    if (!known)
        return;
    known->seen = batch->notes[i].mark;
    if (!batch->notes[i].copied && strcmp(change->path, top) == 0 && has_directory(batch->bring, top))
        known->seen = lasting(*before);
    if (result->outcome == APPLY_DONE) {
        if (result->put.inode && !batch->notes[i].copied)
            note_print(batch->bring, change->path, &result->put);
        settle_done(batch->bring, known, change, result);
        return;
    }
    if (result->outcome == APPLY_SAME) {
        settle_as(known, change->new.type != SIDE_NONE);
        return;
    }
    known->based = known->based || change->old.type != SIDE_NONE;
    if (known->state != KNOWN_OURS)
        known->state = KNOWN_WAITS;
}

/* There is nothing to do: it is on both sides, or on none; or it went with the directory around it, whose
 * change will say so. */
static void settle_same(struct bring *bring, const char *path, const struct known_mark *before)
{
    struct known *known = before->inode ? known_add(&bring->known, path) : known_find(&bring->known, path);
    autoclose int there = before->inode ? -1 : open_at(bring->sides.base, path);

    if (!known)
        return;
    known->seen = lasting(*before);
    if (there < 0)
        settle_as(known, before->inode);
}

/* --- a batch --- */

static void batch_free(struct batch *batch)
{
    free(batch->notes);
    free(batch->results);
}

static int batch_run(struct batch *batch, struct error *err)
{
    struct bring *bring = batch->bring;
    struct apply apply = { .upper = bring->sides.upper,
                           .tree = bring->sides.base,
                           .since = bring->sides.since,
                           .live = true,
                           .accept = is_accepted,
                           .owner = batch };

    batch->notes = memory_zero((batch->changes.len + 1) * sizeof *batch->notes);
    batch->results = memory_zero((batch->changes.len + 1) * sizeof *batch->results);
    return apply_changes(&apply, &batch->changes, is_wanted, batch, batch->results, err);
}

/* No time is given: what the owner changed is judged here, where it is known what is ours. */
static struct changes_source source_of(const struct bring *bring)
{
    const struct live_sides *sides = &bring->sides;

    return (struct changes_source){ .upper = sides->upper,
                                    .base = sides->base,
                                    .marks = sides->marks,
                                    .inside = sides->inside,
                                    .hide = sides->hide,
                                    .shift = sides->shift };
}

/* What we made and the layer has no more was removed inside, also where overlayfs notes nothing: in a
 * directory that is new itself. */
static bool is_gone(const struct bring *bring, const char *path, const struct known_mark *now)
{
    const struct known *known = known_find(&bring->known, path);

    return !now->inode && known && known->state == KNOWN_OURS;
}

static void take_rest(struct bring *bring, const char *path, uint64_t began)
{
    struct known *known = known_find(&bring->known, path);
    uint64_t now = clock_us();

    if (known)
        known->rest_until = now + (now - began) * REST_FACTOR;
}

/* --- what is left --- */

static enum bring_kind kind_of_rest(const struct note *note, const struct change *change,
                                    const struct apply_result *result)
{
    if (note->what == NOTE_WAITS)
        return judge_is_gits(change->path) ? BRING_GIT : BRING_WAITS;
    return note->what == NOTE_OWNERS || result->outcome == APPLY_CONFLICT ? BRING_CONFLICT : BRING_FAILED;
}

/* What the owner made in a directory that the sandbox replaced: it was never seen inside, so it was not
 * removed there either. */
static bool is_unseen(const struct batch *batch, size_t i)
{
    const struct change *change = &batch->changes.items[i];

    return change->kind == CHANGE_REMOVED && batch->notes[i].what == NOTE_OWNERS &&
           !known_find(&batch->bring->known, change->path) && !mark_at(batch->bring, change->path).inode;
}

static void add_rest(const struct batch *batch, size_t i, struct bring_rests *rests, uint64_t *counts)
{
    const struct note *note = &batch->notes[i];
    const struct apply_result *result = &batch->results[i];
    enum bring_kind kind = kind_of_rest(note, &batch->changes.items[i], result);
    const char *why = note->why ? note->why : note->what == NOTE_STOPPED ? "it was stopped" : result->why.text;

    if (result->outcome == APPLY_DONE || result->outcome == APPLY_SAME || is_unseen(batch, i))
        return;
    if (counts[kind]++ < RESTS_MAX)
        *array_add(rests) =
            (struct bring_rest){ kind, text_copy(batch->changes.items[i].path), text_copy(why) };
}

/* --- one scan --- */

/* At most so many at a time: a result takes half a kilobyte. */
enum { SOME = 4096 };

struct round {
    struct bring *bring;
    const char *top;          /* what was asked for; "": everything */
    struct known_mark before; /* its state before the scan */
    struct changes changes;
    bool patient, again;
    struct bring_rests *rests; /* or NULL */
    uint64_t *counts;
};

static bool is_removal(void *owner, const struct change *change)
{
    (void)owner;
    return change->kind == CHANGE_REMOVED ||
           (change->kind == CHANGE_RETYPED && change->old.type == SIDE_DIRECTORY);
}

static bool is_no_removal(void *owner, const struct change *change)
{
    return !is_removal(owner, change);
}

static void settle_one(struct round *round, const struct batch *batch, size_t i)
{
    const struct known_paths *known = &round->bring->known;
    bool forgotten = known->full && !known_find(known, batch->changes.items[i].path);

    if (batch->notes[i].what == NOTE_LATER)
        return;
    if (batch->notes[i].what == NOTE_AGAIN)
        round->again = true;
    if (round->rests)
        add_rest(batch, i, round->rests, round->counts);
    settle(batch, i, round->top, &round->before);
    round->bring->brought += forgotten && batch->results[i].outcome == APPLY_DONE;
}

static int bring_some(struct round *round, size_t from, apply_wanted *only, struct error *err)
{
    size_t len = round->changes.len - from < SOME ? round->changes.len - from : SOME;
    struct batch batch = { .bring = round->bring,
                           .changes = { .items = round->changes.items + from, .len = len },
                           .only = only,
                           .patient = round->patient };
    int result = batch_run(&batch, err);

    for (size_t i = 0; result == 0 && i < len; i++)
        settle_one(round, &batch, i);
    batch_free(&batch);
    return result;
}

/* What is new from the top down, then what goes from the inside out, as within one part. */
static int bring_each(struct round *round, struct error *err)
{
    size_t parts = (round->changes.len + SOME - 1) / SOME;

    if (parts == 1)
        return bring_some(round, 0, NULL, err);
    for (size_t i = 0; i < parts; i++)
        if (bring_some(round, i * SOME, is_no_removal, err) < 0)
            return -1;
    for (size_t i = parts; i-- > 0;)
        if (bring_some(round, i * SOME, is_removal, err) < 0)
            return -1;
    return 0;
}

static int round_run(struct round *round, unsigned how, struct error *err)
{
    struct changes_source source = source_of(round->bring);

    if (changes_scan_at(&source, round->top, how, &round->changes, err) < 0)
        return -1;
    if (*round->top && (!round->changes.len || strcmp(round->changes.items[0].path, round->top) != 0))
        settle_same(round->bring, round->top, &round->before);

    int result = bring_each(round, err);

    changes_free(&round->changes);
    return result;
}

/* --- one path --- */

static enum bring_outcome bring_once(struct bring *bring, const char *path, bool below, bool patient)
{
    struct round round = { .bring = bring, .top = path, .before = mark_at(bring, path), .patient = patient };
    unsigned how = (below ? CHANGES_BELOW : 0U) | (is_gone(bring, path, &round.before) ? CHANGES_GONE : 0U);
    uint64_t began = clock_us();
    struct error ignored; /* whatever it is, the end finds it again */

    if (!known_add(&bring->known, path))
        return BRING_DONE;
    (void)round_run(&round, how, &ignored);
    take_rest(bring, path, began);
    return round.again ? BRING_AGAIN : BRING_DONE;
}

/* What was removed inside just before we put it on the host would be seen there again, through the overlay: as
 * shortly as possible. */
static enum bring_outcome bring_twice(struct bring *bring, const char *path, bool below, bool patient)
{
    enum bring_outcome outcome = bring_once(bring, path, below, patient);
    struct known_mark now = mark_at(bring, path);

    return is_gone(bring, path, &now) ? bring_once(bring, path, below, patient) : outcome;
}

/* Two would take what the other one is just making for something left over: so cove apply and everybody
 * who brings something live take turns. */
static bool takes_turn(const struct bring *bring)
{
    return flock(bring->sides.base, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

enum bring_outcome bring_path(struct bring *bring, const char *path, bool below, bool patient)
{
    if (!takes_turn(bring))
        return BRING_AGAIN;

    enum bring_outcome outcome = bring_twice(bring, path, below, patient);

    (void)flock(bring->sides.base, LOCK_UN);
    return outcome;
}

/* --- all of it --- */

static bool waits_for_turn(const struct bring *bring)
{
    enum { LOOK_US = 10000, LONGEST_US = 5000000 };

    for (uint64_t end = clock_us() + LONGEST_US; !takes_turn(bring); usleep(LOOK_US))
        if (clock_us() > end || (bring->stop && bring->stop(bring->owner)))
            return false;
    return true;
}

static void bring_known(struct bring *bring)
{
    for (size_t i = 0; i < bring->known.len; i++) {
        const struct known *known = &bring->known.items[i];

        if (known->state != KNOWN_OURS || !bring_is_due(bring, known))
            continue;

        autofree char *path = text_copy(known->path);

        (void)bring_twice(bring, path, false, false);
    }
}

int bring_all(struct bring *bring, struct bring_rests *rests, uint64_t counts[BRING_KINDS], struct error *err)
{
    struct round round = { .bring = bring, .top = "", .rests = rests, .counts = counts };

    if (!waits_for_turn(bring))
        return error_set(err, ERROR_REFUSED, "another cove apply is at work in the workspace");
    bring_known(bring);
    return round_run(&round, CHANGES_BELOW, err);
}
