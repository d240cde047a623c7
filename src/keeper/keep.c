#include "keeper/keep.h"

#include "base/error.h"
#include "base/file.h"
#include "base/own.h"
#include "base/sha256.h"
#include "base/text.h"
#include "box/plan.h"
#include "keeper/kept.h"
#include "keeper/result.h"
#include "spec/fields.h"
#include "spec/node.h"
#include "store/authorities.h"
#include "store/store.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* A command line may have megabytes.  Nobody reads more than its beginning. */
enum { ARGV_BYTES_MAX = 64 << 10 };

int keep_check(const struct keep_about *about, struct error *err)
{
    autostrings struct strings labels = STRINGS_NONE;
    autotext struct text shown = TEXT_NONE;

    if (about->name && !record_is_name(about->name)) {
        node_show_text(about->name, &shown);
        return error_set(
            err, ERROR_INVALID,
            "--name %s: must be up to 63 of a-z, 0-9, '.', '_' and '-', the first a letter or digit",
            text_string(&shown));
    }
    for (size_t i = 0; i < about->labels->len; i++)
        if (!record_add_label(&labels, about->labels->items[i])) {
            node_show_text(about->labels->items[i], &shown);
            return error_set(err, ERROR_INVALID,
                             "--label %s: must be KEY or KEY=VALUE of up to 512 bytes, KEY of letters, digits, "
                             "'.', '_', '-' and '/'; 64 of them at most",
                             text_string(&shown));
        }
    return 0;
}

/* Field 22 of /proc/self/stat; the name in field 2 may hold anything. */
static uint64_t own_start(void)
{
    autofree char *stat = file_text(AT_FDCWD, "/proc/self/stat", 4096);
    const char *at = stat ? strrchr(stat, ')') : NULL;

    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at + 1, NULL, 10) : 0;
}

static void add_command(struct record *record, const struct strings *argv)
{
    size_t bytes = 0;

    for (size_t i = 0; i < argv->len; i++) {
        bytes += strlen(argv->items[i]) + 1;
        if (bytes > ARGV_BYTES_MAX) {
            strings_add(&record->argv, "...");
            return;
        }
        strings_add(&record->argv, argv->items[i]);
    }
}

static void add_layers(struct record *record, const struct plan *plan)
{
    for (size_t i = 0; i < plan->steps.len; i++) {
        const struct step *step = &plan->steps.items[i];

        if (step->layer < 0)
            continue;

        const struct tree *tree = &plan->trees.items[step->tree];
        struct record_layer *layer = array_add(&record->layers);

        *layer = (struct record_layer){ .number = (uint64_t)step->layer,
                                        .source = text_copy(tree->origin ? tree->origin : tree->source),
                                        .target = text_copy(tree->target),
                                        .why = text_copy(tree->why),
                                        .device = tree->origin ? tree->origin_device : tree->device,
                                        .inode = tree->origin ? tree->origin_inode : tree->inode };
        strings_copy(&layer->hide, &tree->hide);
    }
}

/* Seconds by which the wall clock is ahead of the clock since boot, which nobody sets. */
static time_t wall_ahead(void)
{
    struct timespec wall, boot;

    clock_gettime(CLOCK_REALTIME, &wall);
    clock_gettime(CLOCK_BOOTTIME, &boot);
    return wall.tv_sec - boot.tv_sec;
}

/* Whoever set the clock back while it ran would hide what the owner wrote meanwhile: by its date that is older
 * than the beginning.  Of a record that was read from the disk it is not known. */
static void heed_clock(struct record *record)
{
    enum { SLACK_S = 1 }; /* both are rounded */
    time_t back = record->wall_ahead - wall_ahead();

    if (record->wall_ahead && back > SLACK_S)
        record->created.tv_sec -= back;
    if (record->wall_ahead && back > SLACK_S && record->since.tv_sec)
        record->since.tv_sec -= back;
}

static void describe(const struct keep_about *about, const char *id, struct record *record)
{
    const struct plan *plan = about->plan;
    const struct tree *workspace = trees_at(&plan->trees, plan->workspace);
    bool copied = workspace && workspace->origin;
    char hash[65];

    spec_hash(about->spec, hash);
    *record = RECORD_NONE;
    record->id = text_copy(id);
    record->name = about->name ? text_copy(about->name) : NULL;
    record->created = about->created;
    record->stays = about->stays;
    record->ttl_ms = about->ttl_ms;
    record->idle_ms = about->idle_ms;
    record->no_checkpoints = about->no_checkpoints;
    record->then = about->then ? text_copy(about->then) : NULL;
    record->wall_ahead = wall_ahead();
    record->workspace = text_copy(plan->workspace);
    record->workspace_device = copied ? workspace->origin_device : workspace ? workspace->device : 0;
    record->workspace_inode = copied ? workspace->origin_inode : workspace ? workspace->inode : 0;
    record->mode = text_copy(fields[FIELD_WORKSPACE].choices[plan->workspace_mode]);
    record->cwd = text_copy(plan->cwd);
    record->image = text_copy(about->spec->image);
    record->spec_hash = text_copy(hash);
    record->keeper = (uint64_t)getpid();
    record->keeper_started = own_start();
    for (size_t i = 0; i < about->labels->len; i++)
        (void)record_add_label(&record->labels, about->labels->items[i]);
    add_command(record, &plan->argv);
    record_set_ids(record, &plan->ids);
    add_layers(record, plan);
}

static int check_name_is_free(int parent, const char *name, struct error *err)
{
    autokept struct kept_list list = KEPT_LIST_NONE;

    if (kept_read_at(parent, &list, err) < 0)
        return -1;
    for (size_t i = 0; i < list.len; i++)
        if (list.items[i].record.name && strcmp(list.items[i].record.name, name) == 0) {
            error_set(err, ERROR_INVALID, "sandbox %.*s has the name %s already", KEPT_ID_SHOWN,
                      list.items[i].id, name);
            return error_hint(err, "take another, or remove that one: cove rm %s", name);
        }
    return 0;
}

/* While we look nobody else gives the same name. */
static int write_named(const struct sandbox_dir *dir, const struct record *record, struct error *err)
{
    if (flock(dir->parent, LOCK_EX) < 0)
        return error_sys(err, "lock the directory of sandboxes");

    int result = check_name_is_free(dir->parent, record->name, err);

    if (result == 0)
        result = record_write(dir->fd, record, err);
    (void)flock(dir->parent, LOCK_UN);
    return result;
}

int keep_name(const struct sandbox_dir *dir, const struct record *record, struct error *err)
{
    return record->name ? write_named(dir, record, err) : record_write(dir->fd, record, err);
}

int keep_begin(const struct keep_about *about, const struct sandbox_dir *dir, struct record *out,
               struct error *err)
{
    struct record record;

    describe(about, dir->id, &record);
    if (keep_name(dir, &record, err) < 0) {
        record_free(&record);
        return -1;
    }
    *out = record;
    return 0;
}

static bool hash_file(int dir, char out[SHA256_TEXT])
{
    enum { SPEC_MAX = 16 << 20 };
    autofree char *spec = file_text(dir, STORE_SPEC, SPEC_MAX);
    unsigned char bytes[SHA256_BYTES];

    if (!spec || !*spec)
        return false;

    struct sha256 *sha256 = sha256_new();

    sha256_add(sha256, spec, strlen(spec));
    sha256_end(sha256, bytes);
    sha256_text(bytes, out);
    return true;
}

int keep_check_spec(int dir, const struct record *record, struct error *err)
{
    char hash[SHA256_TEXT];

    if (hash_file(dir, hash) && strcmp(hash, record->spec_hash) == 0)
        return 0;
    error_set(err, ERROR_REFUSED, "sandbox %.*s: what it is (" STORE_SPEC ") is missing or damaged",
              KEPT_ID_SHOWN, record->id);
    return error_hint(err, "its files are still there: cove diff, cove export, cove apply");
}

int keep_replace_spec(int dir, const char *id, const char *spec, struct error *err)
{
    autorecord struct record record = RECORD_NONE;
    char hash[SHA256_TEXT];

    if (record_read(dir, id, &record, err) < 0 ||
        store_write_file(dir, STORE_SPEC, spec, strlen(spec), err) < 0)
        return -1;
    if (!hash_file(dir, hash))
        return error_set(err, ERROR_SYSTEM, STORE_SPEC " of %.*s cannot be read", KEPT_ID_SHOWN, id);
    free(record.spec_hash);
    record.spec_hash = text_copy(hash);
    return record_write(dir, &record, err);
}

/* Since when the owner may have changed something is what it was: diff and apply compare with that. */
int keep_again(const struct keep_about *about, const struct record *old, const struct sandbox_dir *dir,
               struct record *out, struct error *err)
{
    struct record record;
    char hash[SHA256_TEXT];

    describe(about, dir->id, &record);
    record.name = old->name ? text_copy(old->name) : NULL;
    record.created = old->created;
    record.since = old->since;
    /* Of what is there, though some of it may be forbidden by now; what cannot be read just now was seen
     * before. */
    free(record.spec_hash);
    record.spec_hash = text_copy(hash_file(dir->fd, hash) ? hash : old->spec_hash);
    record.no_checkpoints = old->no_checkpoints;
    record.ttl_ms = old->ttl_ms;
    record.idle_ms = old->idle_ms;
    record.then = old->then ? text_copy(old->then) : NULL;
    strings_copy(&record.labels, &old->labels);
    strings_copy(&record.services, &old->services);
    strings_copy(&record.settled, &old->settled);
    if (record_write(dir->fd, &record, err) < 0) {
        record_free(&record);
        return -1;
    }
    *out = record;
    return 0;
}

static const struct record_layer *layer_at(const struct record *record, const char *target)
{
    for (size_t i = 0; i < record->layers.len; i++)
        if (strcmp(record->layers.items[i].target, target) == 0)
            return &record->layers.items[i];
    return NULL;
}

/* The image below may have been made anew; a directory of the owner's is what it was, or changes would come
 * home to another one. */
static bool lies_on(const struct record_layer *layer, const struct tree *tree)
{
    if (strcmp(layer->why, TREE_WHY_WORKSPACE) != 0 && strcmp(layer->why, TREE_WHY_GIT) != 0 &&
        strcmp(layer->why, TREE_WHY_GRANT) != 0)
        return true;
    return layer->device == tree->device && layer->inode == tree->inode;
}

/* What lies on a copy needs no host's tree, and whatever is at its path by now is not taken for it. */
static void keep_origin(const struct record_layer *layer, struct tree *tree)
{
    free(tree->origin);
    tree->origin = text_copy(layer->source);
    tree->origin_device = layer->device;
    tree->origin_inode = layer->inode;
}

int keep_adopt(const struct record *record, struct plan *plan, struct error *err)
{
    uint64_t fresh = 0;

    for (size_t i = 0; i < record->layers.len; i++)
        if (record->layers.items[i].number >= fresh)
            fresh = record->layers.items[i].number + 1;
    for (size_t i = 0; i < plan->steps.len; i++) {
        struct step *step = &plan->steps.items[i];

        if (step->layer < 0)
            continue;

        struct tree *tree = &plan->trees.items[step->tree];
        const struct record_layer *layer = layer_at(record, tree->target);

        if (layer && record_is_on_copy(record, layer))
            keep_origin(layer, tree);
        else if (layer && !lies_on(layer, tree))
            return error_set(err, ERROR_REFUSED, "%.200s is another directory than when the sandbox was made",
                             tree->source);
        step->layer = (int)(layer ? layer->number : fresh++);
    }
    return 0;
}

static int write_end(int dir, struct record *record, const struct result *result, struct error *err)
{
    record->state = result ? RECORD_STOPPED : RECORD_KILLED;
    record->paused = false;
    clock_gettime(CLOCK_REALTIME, &record->ended);
    heed_clock(record);
    free(record->reason);
    free(record->why);
    record->reason = result ? text_copy(result_reason_name(result->reason)) : NULL;
    record->why = result && result->error.kind != ERROR_NONE ? text_copy(result->error.text) : NULL;
    return record_write(dir, record, err);
}

int keep_end(int dir, struct record *record, const struct result *result, struct error *err)
{
    if (!record->stays && !kept_is_changed(dir, record)) {
        store_drop_record(dir);
        return 0;
    }
    if (!record->stays)
        authorities_give(dir); /* nobody is left who believes it, and a key is not kept for nothing */
    if (result)
        record->exit_code = (uint64_t)result->exit_code;
    return write_end(dir, record, result, err) < 0 ? -1 : 1;
}

int keep_stop(int dir, struct record *record, const struct result *result, struct error *err)
{
    return write_end(dir, record, result, err);
}

/* By the lock it is ours, and what its record says now is the last word. */
void keep_finish(int parent, const char *id)
{
    autorecord struct record record = RECORD_NONE;
    struct error ignored;
    autoclose int dir = store_enter(parent, id, &ignored);

    if (dir < 0 || store_hold(dir, 0) < 0 || record_read(dir, id, &record, &ignored) < 0)
        return;
    if (record.state == RECORD_RUNNING && keep_end(dir, &record, NULL, &ignored) == 0)
        (void)store_remove_tree(parent, id, &ignored);
    else
        store_tidy(dir);
}
