/* `cove fork`: a new sandbox is a directory whose stack is a layer of another one, and which has stopped; then
 * it is started like any other. */

#include "base/error.h"
#include "base/file.h"
#include "base/own.h"
#include "base/text.h"
#include "cli/forking.h"
#include "cli/point.h"
#include "cli/snapshot.h"
#include "cli/staying.h"
#include "keeper/keep.h"
#include "keeper/snapshots.h"
#include "keeper/trust.h"
#include "store/bottom.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SPEC_MAX = 1 << 20, FORKS_MAX = 256 };

const struct option_row options_of_fork[] = {
    { "count", 'n', "N", "Make so many (1)", OPTION_STRING, offsetof(struct run_options, count) },
    { "name", 0, "NAME", "Name the sandbox; several are NAME-1, NAME-2 ...", OPTION_STRING,
      offsetof(struct run_options, name) },
    { NULL },
};

/* What a new one is to have of its own. */
struct fork_wish {
    const char *name, *label; /* NULL: none */
};

/* What is forked. */
struct source {
    struct which which;
    struct snapshot snapshot;    /* of a sandbox: only its layer */
    const char *folder, *name;   /* where it lies: sandboxes or snapshots */
    const struct record *record; /* of the sandbox or the snapshot */
    char *spec;                  /* its text */
};

#define SOURCE_NONE ((struct source){ .which = WHICH_NONE, .snapshot = SNAPSHOT_NONE })
#define autosource __attribute__((cleanup(source_free)))

static void source_free(struct source *source)
{
    free(source->spec);
    snapshot_free(&source->snapshot);
    which_free(&source->which);
}

/* The copy of a workspace (--workspace copy) is shared if it is a layer; older ones are in their sandbox. */
static int check(const struct source *source, struct error *err)
{
    autoclose int layers = layers_open(source->which.host.state, err);
    char copy[ID_LENGTH + 1];

    if (layers < 0 || bottom_find(layers, source->snapshot.layer, copy, err) < 0)
        return -1;
    if (strcmp(source->record->mode, "copy") == 0 && !*copy)
        return error_set(err, ERROR_REFUSED,
                         "this sandbox has its copy of the workspace for itself; one that is made today shares "
                         "it with its forks");
    return 0;
}

static int read_spec(struct source *source, const char *folder, const char *name, struct error *err)
{
    autofree char *path = text_format("%s/%s/%s", source->which.host.state, folder, name);
    autoclose int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    source->folder = folder;
    source->name = name;
    if (dir < 0)
        return error_sys(err, "open %s", path);
    if (keep_check_spec(dir, source->record, err) < 0)
        return -1;
    source->spec = file_text(dir, STORE_SPEC, SPEC_MAX);
    return source->spec ? 0 : error_sys(err, "read %s/" STORE_SPEC, path);
}

static int take_sandbox(struct source *source, const char *id, const char *step, struct error *err)
{
    const struct kept *kept = which_sandbox(&source->which, id, err);
    struct point point;

    if (!kept)
        return -1;
    if (kept_check_whole(kept, err) < 0)
        return -1;
    if ((step ? point_find(&source->which, kept, step, &point, err)
              : point_now(&source->which, kept, &point, err)) < 0)
        return -1;
    memcpy(source->snapshot.layer, point.layer, sizeof point.layer);
    source->record = &kept->record;
    return read_spec(source, "sandboxes", kept->id, err);
}

/* A sandbox of that name comes before a snapshot; without a word it is the last sandbox of this work tree. */
static int read_source(struct source *source, const char *word, struct error *err)
{
    autofree char *id = text_copy(word ? word : "");
    const char *step = point_split(id);
    struct error none;

    if (!word) {
        if (which_read(&source->which, err) < 0)
            return -1;
        return take_sandbox(source, NULL, NULL, err);
    }
    if (which_read_for(&source->which, id, err) < 0)
        return -1;
    if (step || which_sandbox(&source->which, id, &none))
        return take_sandbox(source, id, step, err);
    if (snapshot_read(source->which.host.state, word, &source->snapshot, err) < 0) {
        error_set(err, err->kind, "there is neither a sandbox nor a snapshot '%.70s'", word);
        return error_hint(err, "`cove ls` and `cove snapshot ls` list them");
    }
    source->record = &source->snapshot.record;
    return read_spec(source, "snapshots", word, err);
}

/* What it was given is as it was for the other one; what it is called, and what became of it, is its own. */
static int describe(const struct source *source, const char *id, const struct fork_wish *wish,
                    struct record *out, struct error *err)
{
    autotext struct text json = TEXT_NONE;

    record_json(source->record, &json);
    if (record_read_json(text_string(&json), json.len, "record", out, err) < 0)
        return -1;
    free(out->id);
    free(out->name);
    out->id = text_copy(id);
    out->name = wish->name ? text_copy(wish->name) : NULL;
    out->since = record_since(source->record);
    clock_gettime(CLOCK_REALTIME, &out->created);
    out->state = RECORD_STOPPED;
    out->paused = false;
    out->applied = (struct timespec){ 0 };
    if (wish->label && !record_add_label(&out->labels, wish->label))
        return error_set(err, ERROR_REFUSED, "a sandbox with so many labels takes no more of them");
    return 0;
}

static int fill(const struct source *source, const struct sandbox_dir *dir, const struct fork_wish *wish,
                struct record *record, struct error *err)
{
    autoclose int layers = layers_open(source->which.host.state, err);
    autostrings struct strings chain = STRINGS_NONE;
    struct stack_place place = { .layers = layers,
                                 .sandbox = dir->fd,
                                 .id = dir->id,
                                 .ids = source->record->shifted ? (uint32_t)source->record->base : 0 };

    if (layers < 0 || stack_turn(&place, source->snapshot.layer, &chain, err) < 0)
        return -1;
    stack_clean(dir->fd);
    if (store_write_file(dir->fd, STORE_SPEC, source->spec, strlen(source->spec), err) < 0 ||
        describe(source, dir->id, wish, record, err) < 0)
        return -1;
    return keep_name(dir, record, err);
}

static void drop(const char *id)
{
    autowhich struct which which = WHICH_NONE;
    struct error ignored;
    const struct kept *kept =
        which_read_for(&which, id, &ignored) < 0 ? NULL : which_sandbox(&which, id, &ignored);

    if (kept)
        (void)kept_remove(&which.all, kept, &ignored);
}

/* Its directory stays in our hands, locked.  With `ahead` it is to be started. */
static int make(const struct source *source, const struct fork_wish *wish, struct sandbox_dir *dir,
                struct record *record, struct trust_ahead *ahead, struct error *err)
{
    struct error ignored;

    if (store_create(source->which.host.state, dir, err) < 0)
        return -1;
    if (ahead)
        staying_ahead(source->record, dir->fd, ahead);
    if (fill(source, dir, wish, record, err) < 0) {
        autoclose int layers = layers_open(source->which.host.state, &ignored);

        if (ahead)
            trust_await(ahead);
        (void)store_remove(dir, &ignored);
        if (layers >= 0)
            (void)layers_release_all(layers, dir->id, &ignored);
        return -1;
    }
    return 0;
}

static int fork_one(const struct source *source, const char *name, struct error *err)
{
    autorecord struct record record = RECORD_NONE;
    struct sandbox_dir dir = SANDBOX_DIR_NONE;
    struct trust_ahead ahead = TRUST_AHEAD_NONE;

    if (make(source, &(struct fork_wish){ .name = name }, &dir, &record, &ahead, err) < 0)
        return -1;

    int started = staying_start_new(&source->which.host, &record, &dir, &ahead, err);

    if (started < 0) {
        drop(record.id);
        return -1;
    }
    printf("%s\n", record.id);
    fflush(stdout);
    return started ? -1 : 0;
}

static int read_count(const char *text, unsigned *out, struct error *err)
{
    unsigned long count = text ? strtoul(text, NULL, 10) : 1;

    *out = 1;
    if (text && (!*text || text[strspn(text, "0123456789")] || count < 1 || count > FORKS_MAX))
        return error_set(err, ERROR_INVALID, "-n %.20s: must be 1 to %d", text, FORKS_MAX);
    *out = (unsigned)count;
    return 0;
}

int cli_fork(struct options *options, struct error *err)
{
    autosource struct source source = SOURCE_NONE;
    const char *name = options->run.name;
    unsigned count;

    if (options->words.len != 1)
        return error_set(err, ERROR_INVALID,
                         "`cove fork` takes one sandbox or snapshot; a step of one is ID@STEP");
    if (name && !record_is_name(name))
        return error_set(err, ERROR_INVALID, "--name %.70s: is no name of a sandbox", name);
    if (read_count(options->run.count, &count, err) < 0 ||
        read_source(&source, options->words.items[0], err) < 0 || check(&source, err) < 0)
        return -1;
    for (unsigned i = 1; i <= count; i++) {
        autofree char *own = !name ? NULL : count > 1 ? text_format("%s-%u", name, i) : text_copy(name);

        if (fork_one(&source, own, err) < 0)
            return -1;
    }
    return 0;
}

/* --- for whoever makes many of one state --- */

void forking_free(struct forking *forking)
{
    free(forking->workspace);
    free(forking->spec);
    *forking = FORKING_NONE;
}

int forking_look(const char *word, struct forking *out, struct error *err)
{
    autosource struct source source = SOURCE_NONE;

    if (read_source(&source, word, err) < 0)
        return -1;
    memcpy(out->layer, source.snapshot.layer, sizeof out->layer);
    out->workspace = text_copy(source.record->workspace);
    out->spec = steal_ptr(&source.spec);
    return 0;
}

int forking_hold(const char *word, const char *name, struct error *err)
{
    autosource struct source source = SOURCE_NONE;

    if (read_source(&source, word, err) < 0)
        return -1;

    autofree char *path = text_format("%s/%s/%s", source.which.host.state, source.folder, source.name);
    autoclose int dir = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (dir < 0)
        return error_sys(err, "open %s", path);
    return snapshot_make(source.which.host.state, name, dir, source.record, source.snapshot.layer, err);
}

int forking_make(const char *word, const char *label, char id[ID_LENGTH + 1], struct error *err)
{
    autosource struct source source = SOURCE_NONE;
    autorecord struct record record = RECORD_NONE;
    struct sandbox_dir dir = SANDBOX_DIR_NONE;

    if (read_source(&source, word, err) < 0 ||
        make(&source, &(struct fork_wish){ .label = label }, &dir, &record, NULL, err) < 0)
        return -1;
    memcpy(id, dir.id, sizeof dir.id);
    own_close(&dir.fd);
    own_close(&dir.parent);
    return 0;
}
