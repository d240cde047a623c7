#include "keeper/snapshots.h"

#include "base/error.h"
#include "base/file.h"
#include "base/own.h"
#include "base/text.h"
#include "box/idmap.h"
#include "box/plan.h"
#include "store/layers.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SPEC_MAX = 1 << 20 };

void snapshot_free(struct snapshot *snapshot)
{
    record_free(&snapshot->record);
    *snapshot = SNAPSHOT_NONE;
}

static int open_all(const char *state, struct error *err)
{
    autoclose int base = open(state, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (base < 0)
        return error_sys(err, "open the state directory %s", state);
    return store_open_private(base, "snapshots", "snapshots in the state directory", err);
}

static int check_name(const char *name, struct error *err)
{
    bool only_digits = !name[strspn(name, "0123456789")];

    if (record_is_name(name) && !only_digits)
        return 0;
    return error_set(err, ERROR_INVALID,
                     "'%.70s' is no name for a snapshot: up to 63 of a-z, 0-9, '.', '_' and '-', the first a "
                     "letter or digit, and not a number",
                     name);
}

static int missing(const char *name, struct error *err)
{
    error_set(err, ERROR_MISSING, "there is no snapshot '%.70s'", name);
    return error_hint(err, "`cove snapshot ls` lists them");
}

/* The link is the last: without it there is no snapshot. */
static int fill(int made, int dir, const struct record *record, const char *layer, struct error *err)
{
    autofree char *spec = file_text(dir, STORE_SPEC, SPEC_MAX);

    if (!spec)
        return error_sys(err, "read what the sandbox is");
    if (store_write_file(made, STORE_SPEC, spec, strlen(spec), err) < 0 || record_write(made, record, err) < 0)
        return -1;
    return symlinkat(layer, made, LAYERS_SNAPSHOT_LINK) < 0 ? error_sys(err, "write a snapshot") : 0;
}

/* Its directory, which whoever makes it has the lock of until it is done: one that nobody has the lock of, and
 * that is not finished, was left by somebody who died, and its name is free. */
static int reserve(int all, const char *name, bool *left, struct error *err)
{
    autoclose int made = -1;
    struct stat status;

    *left = mkdirat(all, name, 0700) < 0;
    if (*left && errno != EEXIST)
        return error_sys(err, "make a snapshot");
    made = openat(all, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (made < 0)
        return error_sys(err, "make a snapshot");
    if (flock(made, LOCK_EX | LOCK_NB) < 0 || fstat(made, &status) < 0 || !status.st_nlink ||
        fstatat(made, LAYERS_SNAPSHOT_LINK, &status, AT_SYMLINK_NOFOLLOW) == 0) {
        error_set(err, ERROR_INVALID, "there is a snapshot %s already", name);
        return error_hint(err, "take another name, or remove that one: cove snapshot rm %s", name);
    }
    return steal_fd(&made);
}

static int make(int all, int layers, const char *name, int dir, const struct record *record, const char *layer,
                struct error *err)
{
    autofree char *holder = text_format(LAYERS_SNAPSHOT "%s", name);
    bool left;
    autoclose int made = reserve(all, name, &left, err);
    struct error ignored;

    if (made < 0 || (left && layers_release_all(layers, holder, err) < 0))
        return -1;
    if (layers_hold(layers, layer, holder, err) == 0 && fill(made, dir, record, layer, err) == 0)
        return 0;
    (void)store_remove_tree(all, name, &ignored);
    (void)layers_release(layers, layer, holder, &ignored);
    return -1;
}

int snapshot_make(const char *state, const char *name, int dir, const struct record *record, const char *layer,
                  struct error *err)
{
    if (check_name(name, err) < 0)
        return -1;

    autoclose int all = open_all(state, err), layers = all < 0 ? -1 : layers_open(state, err);
    autoclose int alone = layers < 0 ? -1 : layers_keep_out_sweeps(layers, err);

    return alone < 0 ? -1 : make(all, layers, name, dir, record, layer, err);
}

static int read_layer(int dir, const char *state, struct snapshot *out, struct error *err)
{
    autolayerinfo struct layer_info layer = LAYER_INFO_NONE;
    autoclose int layers = layers_open(state, err);
    ssize_t len = readlinkat(dir, LAYERS_SNAPSHOT_LINK, out->layer, sizeof out->layer);

    if (len != ID_LENGTH)
        return error_set(err, ERROR_INVALID, "the snapshot was not finished");
    out->layer[len] = '\0';
    if (layers < 0 || !store_is_id(out->layer) || layers_read(layers, out->layer, &layer, err) < 0)
        return -1;
    out->step = layer.step;
    out->made = layer.made;
    return 0;
}

int snapshot_read(const char *state, const char *name, struct snapshot *out, struct error *err)
{
    autoclose int all = open_all(state, err), dir = -1;
    struct snapshot snapshot = SNAPSHOT_NONE;

    if (all < 0)
        return -1;
    dir = record_is_name(name) ? openat(all, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (dir < 0)
        return missing(name, err);
    if (read_layer(dir, state, &snapshot, err) < 0)
        return error_while(err, "read the snapshot %s", name);

    autofree char *text = file_text(dir, STORE_RECORD, SPEC_MAX);

    if (!text || record_read_json(text, strlen(text), name, &snapshot.record, err) < 0)
        return text ? -1 : error_sys(err, "read the snapshot %s", name);
    *out = snapshot;
    return 0;
}

/* --- removing --- */

struct removal {
    int all, layers;
    const char *name, *holder;
};

/* The link first: whoever dies from then on leaves what is as good as never made.  Its directory last: while it
 * is there, whoever takes the name again looks for what is held under it. */
static int remove_all(const struct removal *removal, struct error *err)
{
    autofree char *link = text_format("%s/" LAYERS_SNAPSHOT_LINK, removal->name);

    if (unlinkat(removal->all, link, 0) < 0 && errno != ENOENT)
        return error_sys(err, "remove the snapshot %s", removal->name);
    if (layers_release_all(removal->layers, removal->holder, err) < 0)
        return -1;
    return store_remove_tree(removal->all, removal->name, err);
}

static int remove_inside(void *argument)
{
    struct error ignored;

    return remove_all(argument, &ignored);
}

int snapshot_remove(const char *state, const char *name, struct error *err)
{
    autosnapshot struct snapshot snapshot = SNAPSHOT_NONE;
    autofree char *holder = text_format(LAYERS_SNAPSHOT "%s", name);
    autoclose int all = open_all(state, err), layers = all < 0 ? -1 : layers_open(state, err),
                  alone = layers < 0 ? -1 : layers_keep_out_sweeps(layers, err);
    struct removal removal = { all, layers, name, holder };
    struct ids ids = { 0 };
    struct error why;

    if (alone < 0)
        return -1;
    if (snapshot_read(state, name, &snapshot, &why) == 0)
        record_get_ids(&snapshot.record, &ids);
    else if (why.kind == ERROR_MISSING)
        return missing(name, err);
    if (ids.helpers && ids.rows == 2)
        return idmap_run(&ids, remove_inside, &removal, err);
    return remove_all(&removal, err);
}

int snapshots_list(const char *state, struct strings *out, struct error *err)
{
    int fd = open_all(state, err);
    autoclosedir DIR *entries = fd < 0 ? NULL : fdopendir(fd);

    if (!entries)
        return fd < 0 ? -1 : error_sys(err, "list snapshots");
    for (const struct dirent *entry; (entry = sys_next_entry(entries));)
        if (record_is_name(entry->d_name))
            strings_add(out, entry->d_name);
    strings_sort(out);
    return 0;
}
