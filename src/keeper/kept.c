#include "keeper/kept.h"

#include "base/own.h"
#include "base/text.h"
#include "box/idmap.h"
#include "box/plan.h"
#include "store/bottom.h"
#include "store/layer.h"
#include "store/stack.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct kept_word kept_word(const struct kept *kept)
{
    const char *name = kept->record.name;
    struct kept_word word;

    snprintf(word.text, sizeof word.text, "%.*s", name ? (int)sizeof word.text - 1 : KEPT_ID_SHOWN,
             name ? name : kept->id);
    return word;
}

const char *kept_state_name(enum kept_state state)
{
    static const char *const names[] = { [KEPT_RUNNING] = "running",
                                         [KEPT_PAUSED] = "paused",
                                         [KEPT_STOPPED] = "stopped",
                                         [KEPT_KILLED] = "killed",
                                         [KEPT_BROKEN] = "broken" };

    return names[state];
}

int kept_check_whole(const struct kept *kept, struct error *err)
{
    if (kept->state != KEPT_BROKEN)
        return 0;
    *err = kept->problem;
    return -1;
}

bool kept_is_alive(const struct kept *kept)
{
    return kept->state == KEPT_RUNNING || kept->state == KEPT_PAUSED;
}

void kept_free(struct kept_list *list)
{
    for (size_t i = 0; i < list->len; i++)
        record_free(&list->items[i].record);
    free(list->items);
    if (list->parent >= 0)
        close(list->parent);
    *list = KEPT_LIST_NONE;
}

/* --- reading --- */

static enum kept_state state_of(int dir, const struct record *record)
{
    static const enum kept_state states[] = {
        [RECORD_RUNNING] = KEPT_RUNNING, [RECORD_STOPPED] = KEPT_STOPPED, [RECORD_KILLED] = KEPT_KILLED
    };

    if (record->state == RECORD_RUNNING && !store_is_held(dir))
        return KEPT_KILLED;
    if (record->state == RECORD_RUNNING && record->paused)
        return KEPT_PAUSED;
    return states[record->state];
}

/* A directory without a record keeps nothing, and one that is gone by now was just removed. */
static void read_one(struct kept_list *list, const char *id)
{
    struct error ignored;
    autoclose int dir = store_enter(list->parent, id, &ignored);

    if (dir < 0 || faccessat(dir, STORE_RECORD, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return;

    struct kept *kept = array_add(list);

    snprintf(kept->id, sizeof kept->id, "%s", id);
    if (record_read(dir, id, &kept->record, &kept->problem) < 0)
        kept->state = KEPT_BROKEN;
    else
        kept->state = state_of(dir, &kept->record);
}

static int by_age(const void *a, const void *b)
{
    const struct kept *first = a, *second = b;
    const struct timespec *x = &first->record.created, *y = &second->record.created;

    if (x->tv_sec != y->tv_sec)
        return x->tv_sec < y->tv_sec ? 1 : -1;
    if (x->tv_nsec != y->tv_nsec)
        return x->tv_nsec < y->tv_nsec ? 1 : -1;
    return strcmp(first->id, second->id);
}

int kept_read_at(int parent, struct kept_list *out, struct error *err)
{
    autostrings struct strings ids = STRINGS_NONE;
    struct kept_list list = KEPT_LIST_NONE;

    if (store_list(parent, &ids, err) < 0)
        return -1;
    list.parent = fcntl(parent, F_DUPFD_CLOEXEC, 0);
    if (list.parent < 0)
        return error_sys(err, "copy a descriptor");
    for (size_t i = 0; i < ids.len; i++)
        read_one(&list, ids.items[i]);
    if (list.len)
        qsort(list.items, list.len, sizeof *list.items, by_age);
    *out = list;
    return 0;
}

/* One of 10,000 is not looked for among all. */
bool kept_read_one(const char *state, const char *id, struct kept_list *out)
{
    struct kept_list list = KEPT_LIST_NONE;
    struct error ignored;

    list.parent = store_is_id(id) ? store_open(state, &ignored) : -1;
    if (list.parent >= 0)
        read_one(&list, id);
    if (!list.len) {
        kept_free(&list);
        return false;
    }
    *out = list;
    return true;
}

int kept_read(const char *state, struct kept_list *out, struct error *err)
{
    struct error why;
    autoclose int parent = store_open(state, &why);

    if (parent >= 0)
        return kept_read_at(parent, out, err);
    if (why.kind == ERROR_MISSING) {
        *out = KEPT_LIST_NONE;
        return 0;
    }
    *err = why;
    return -1;
}

/* --- finding --- */

/* The candidates of an ambiguous beginning, a few of them. */
static void add_candidates(const struct kept_list *list, const char *prefix, struct text *out)
{
    enum { SHOWN_MAX = 8 };
    size_t shown = 0;

    for (size_t i = 0; i < list->len; i++) {
        if (!text_starts(list->items[i].id, prefix))
            continue;
        if (shown++ == SHOWN_MAX) {
            text_add(out, " and others");
            return;
        }
        text_addf(out, "%s%.*s", shown > 1 ? ", " : "", KEPT_ID_SHOWN, list->items[i].id);
        if (list->items[i].record.name)
            text_addf(out, " (%s)", list->items[i].record.name);
    }
}

static const struct kept *find_prefix(const struct kept_list *list, const char *prefix, size_t *count)
{
    const struct kept *found = NULL;

    *count = 0;
    for (size_t i = 0; i < list->len; i++)
        if (text_starts(list->items[i].id, prefix)) {
            found = &list->items[i];
            ++*count;
        }
    return found;
}

const struct kept *kept_find(const struct kept_list *list, const char *word, struct error *err)
{
    autotext struct text candidates = TEXT_NONE;
    size_t count;

    for (size_t i = 0; i < list->len; i++)
        if (list->items[i].record.name && strcmp(list->items[i].record.name, word) == 0)
            return &list->items[i];

    const struct kept *found = find_prefix(list, word, &count);

    if (strlen(word) < KEPT_PREFIX_LEAST) {
        error_set(err, count ? ERROR_INVALID : ERROR_MISSING, "no sandbox is named '%s'", word);
        error_hint(err, "the beginning of an id needs %d characters at least", KEPT_PREFIX_LEAST);
        return NULL;
    }
    if (count == 1)
        return found;
    if (!count) {
        error_set(err, ERROR_MISSING, "there is no sandbox '%.100s'", word);
        error_hint(err, "`cove ls` lists them");
        return NULL;
    }
    add_candidates(list, word, &candidates);
    error_set(err, ERROR_INVALID, "'%s' is the beginning of %zu ids: %s", word, count,
              text_string(&candidates));
    return NULL;
}

const struct kept *kept_newest_of(const struct kept_list *list, const char *workspace,
                                  const struct stat *status)
{
    for (size_t i = 0; i < list->len; i++)
        if (list->items[i].record.workspace && list->items[i].record.workspace_device == status->st_dev &&
            list->items[i].record.workspace_inode == status->st_ino)
            return &list->items[i];
    for (size_t i = 0; i < list->len; i++)
        if (list->items[i].record.workspace && strcmp(list->items[i].record.workspace, workspace) == 0)
            return &list->items[i];
    return NULL;
}

/* --- changes --- */

/* Caches and the image are the sandbox's own business. */
static bool is_of_interest(const struct record_layer *layer)
{
    static const char *const whys[] = { TREE_WHY_WORKSPACE, TREE_WHY_GIT, TREE_WHY_GRANT };

    for (size_t i = 0; i < ARRAY_LEN(whys); i++)
        if (strcmp(layer->why, whys[i]) == 0)
            return true;
    return false;
}

/* What the layer lies on: a copy of ours, or the host's own, if that is still the one it was. */
static int open_base(int dir, const struct record *record, const struct record_layer *layer)
{
    autoclose int base = -1;
    struct stat status;
    struct error ignored;

    if (record_is_on_copy(record, layer))
        return bottom_open(dir, layer->number, &ignored);
    base = sys_openat2(AT_FDCWD, layer->source, O_RDONLY | O_DIRECTORY,
                       RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
    if (base < 0 || fstat(base, &status) < 0 || status.st_dev != layer->device || status.st_ino != layer->inode)
        return -1;
    return steal_fd(&base);
}

static bool is_upper_changed(int dir, const char *name, int base)
{
    autoclose int upper = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (upper < 0)
        return errno != ENOENT; /* it was never mounted */
    return base < 0 || !layer_is_untouched(upper, base);
}

/* What cannot be looked at has changed something. */
static bool is_stack_changed(int dir, const char *name, int base)
{
    autoclose int parent = openat(dir, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
    autostrings struct strings chain = STRINGS_NONE;
    char top[ID_LENGTH + 1];
    struct error ignored;

    if (stack_top(dir, top, &ignored) < 0)
        return true;
    if (!*top)
        return false;

    autoclose int layers = layers_beside(parent, &ignored);

    if (layers < 0 || layers_chain(layers, top, &chain, &ignored) < 0)
        return true;
    for (size_t i = 0; i < chain.len; i++) {
        autofree char *path = text_format("%s/%s", chain.items[i], name);

        if (is_upper_changed(layers, path, base))
            return true;
    }
    return false;
}

static bool is_layer_changed(int dir, const struct record *record, const struct record_layer *layer)
{
    autofree char *name = text_format("u%llu", (unsigned long long)layer->number);
    autoclose int base = open_base(dir, record, layer);

    return is_upper_changed(dir, name, base) || is_stack_changed(dir, name, base);
}

static bool is_home(const struct record *record, const struct record_layer *layer)
{
    return record->home && strcmp(layer->target, record->workspace) == 0;
}

bool kept_is_changed(int dir, const struct record *record)
{
    for (size_t i = 0; i < record->layers.len; i++)
        if (is_of_interest(&record->layers.items[i]) && !is_home(record, &record->layers.items[i]) &&
            is_layer_changed(dir, record, &record->layers.items[i]))
            return true;
    return false;
}

bool kept_has_changed_grants(int dir, const struct record *record)
{
    for (size_t i = 0; i < record->layers.len; i++)
        if (strcmp(record->layers.items[i].why, TREE_WHY_GRANT) == 0 &&
            is_layer_changed(dir, record, &record->layers.items[i]))
            return true;
    return false;
}

/* --- removing --- */

int kept_open(const struct kept_list *list, const struct kept *kept, struct error *err)
{
    return store_enter(list->parent, kept->id, err);
}

int kept_renew(const struct kept_list *list, const struct kept *kept, int dir, struct error *err)
{
    struct kept *ours = &list->items[kept - list->items];
    struct record record;

    if (faccessat(dir, STORE_RECORD, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return error_set(err, ERROR_MISSING, "sandbox %.*s was removed meanwhile", KEPT_ID_SHOWN, kept->id);
    if (record_read(dir, kept->id, &record, err) < 0)
        return -1;
    record_free(&ours->record);
    ours->record = record;
    ours->state = record.state == RECORD_STOPPED ? KEPT_STOPPED : KEPT_KILLED;
    return 0;
}

/* The directory first: a layer is needed as long as anything lies on it. */
static int remove_all(const struct sandbox_dir *dir, struct error *err)
{
    struct error why;

    if (store_remove_tree(dir->parent, dir->id, err) < 0)
        return -1;

    autoclose int layers = layers_beside(dir->parent, &why);

    if (layers >= 0)
        return layers_release_all(layers, dir->id, err);
    if (why.kind == ERROR_MISSING)
        return 0;
    *err = why;
    return -1;
}

static int remove_inside(void *argument)
{
    struct error ignored;

    return remove_all(argument, &ignored);
}

/* Subordinate ids are known to nobody but a user namespace that maps them. */
static int remove_as(const struct record *record, struct sandbox_dir *dir, struct error *err)
{
    struct ids ids;

    record_get_ids(record, &ids);
    if (!ids.helpers || ids.rows != 2)
        return remove_all(dir, err);
    return idmap_run(&ids, remove_inside, dir, err);
}

static int refuse_running(const struct kept *kept, struct error *err)
{
    error_set(err, ERROR_REFUSED, "sandbox %s is running", kept_word(kept).text);
    if (kept->record.stays)
        return error_hint(err, "stop it first: cove stop %s, or remove it at once: cove rm -f %s",
                          kept_word(kept).text, kept_word(kept).text);
    return error_hint(err, "end its command first (cove run is process %llu)",
                      (unsigned long long)kept->record.keeper);
}

/* Whoever had stopped may have been started since we looked: then its lock is not a guard's. */
static bool was_started(const struct kept *kept, int dir)
{
    autorecord struct record now = RECORD_NONE;
    struct error ignored;

    return kept->state == KEPT_STOPPED && record_read(dir, kept->id, &now, &ignored) == 0 &&
           now.state == RECORD_RUNNING;
}

void kept_settle(const struct kept *kept, int dir)
{
    enum { BEAT_MS = 5, BEATS = 2000 };

    for (int i = 0; i < BEATS && !kept_is_alive(kept) && store_is_held(dir) && !was_started(kept, dir); i++)
        (void)poll(NULL, 0, BEAT_MS);
}

static int hold_stopped(const struct kept *kept, int dir, struct error *err)
{
    enum { GUARD_MS = 10000, BEAT_MS = 50 }; /* a guard may still be at work on one that has stopped */

    for (int waited = 0; store_hold(dir, BEAT_MS) < 0; waited += BEAT_MS) {
        if (was_started(kept, dir))
            return refuse_running(kept, err);
        if (waited >= GUARD_MS)
            return error_sys(err, "lock the sandbox %.*s", KEPT_ID_SHOWN, kept->id);
    }
    return 0;
}

int kept_remove(const struct kept_list *list, const struct kept *kept, struct error *err)
{
    struct sandbox_dir dir = { .parent = list->parent };
    autoclose int fd = -1;

    if (kept_is_alive(kept))
        return refuse_running(kept, err);
    fd = kept_open(list, kept, err);
    if (fd < 0)
        return -1;
    if (hold_stopped(kept, fd, err) < 0)
        return -1;
    memcpy(dir.id, kept->id, sizeof dir.id);
    /* First, so that what is left after a crash in between is nobody's. */
    store_drop_record(fd);
    if (remove_as(&kept->record, &dir, err) < 0)
        return error_while(err, "remove the sandbox %.*s", KEPT_ID_SHOWN, kept->id);
    return 0;
}
