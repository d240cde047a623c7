/* Freezing and turning.
 *
 * Theory of operation.  Both move directories between two places, and no rename moves more than one.  So
 * everything that needs space on the disk is prepared first, beside what is there.  Then what is intended is
 * written down (a link `freezing` or `turning` in the sandbox's directory, whose text is the layer's id), and
 * done in steps that each may be done twice, renames only.  Then it is crossed out.  Whoever finds an intent
 * does the steps again from the first one.  Nothing is mounted meanwhile, so nothing but these steps changes
 * what they look at.
 *
 * Freezing, with a new layer L on the old top P:
 *
 * 1. Prepare: new.L with its file, held by the sandbox; P held by L; fresh directories nK that look like uK; a
 *    link stack.new.  After a crash no intent names new.L, and the sweep removes it and its hold on P.
 * 2. freezing says L.  From here on the sweep leaves new.L alone, and a crash is repaired by going on.
 * 3. Each uK moves to new.L.  None is in both places, as a rename moves; none in neither, as fresh ones take
 *    their places after step 4 only.
 * 4. new.L becomes L.  If new.L is not there, 3 and 4 were done.
 * 5. stack says L.
 * 6. Each nK becomes uK.  One that is not there has become it already, or is made anew.
 * 7. freezing goes.
 *
 * So a file that was written is in uK, in new.L or in L, and in each case part of what the sandbox shows next.
 * P stays held: by the sandbox until its owner lets go of that step, and by L for good.
 *
 * Trees that nothing was written to may be left out.  Who repairs does not know which, and takes all: one more
 * directory, empty, shows the same.
 *
 * Turning to a layer T:
 *
 * 1. Prepare: T is held by the sandbox; nK that look like the newest of T and what it lies on; stack.new.
 * 2. turning says T.
 * 3. Each uK moves aside.  When this is done twice, fresh ones are set aside too: they are empty.
 * 4. stack says T.  5. Each nK becomes uK, or is made anew.  6. turning goes.
 *
 * An ordinary user may not move a directory to another one if its mode forbids writing, not even the owner.  A
 * command may have set such a mode on the top of its tree, and it is part of what is frozen: so it is written
 * down (a link mK in new.L), changed for the move, and set again. */

#include "store/stack.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "store/attributes.h"
#include "sys/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NO_LAYER "none"

/* --- links that hold an id --- */

static int read_link(int dir, const char *name, char id[ID_LENGTH + 1], struct error *err)
{
    char text[ID_LENGTH + 2];
    ssize_t len = readlinkat(dir, name, text, sizeof text);

    *id = '\0';
    if (len < 0)
        return errno == ENOENT ? 0 : error_sys(err, "read the sandbox's %s", name);
    text[len < (ssize_t)sizeof text ? len : (ssize_t)sizeof text - 1] = '\0';
    if (!store_is_id(text) && strcmp(text, NO_LAYER) != 0)
        return error_set(err, ERROR_INVALID, "the sandbox's %s is not what we write", name);
    memcpy(id, text, (size_t)len + 1);
    return 1;
}

int stack_top(int sandbox, char top[ID_LENGTH + 1], struct error *err)
{
    int found = read_link(sandbox, STORE_STACK, top, err);

    return found < 0 ? -1 : 0;
}

/* A link that is ready to take the place of `name`. */
static int prepare_link(int dir, const char *name, const char *id, struct error *err)
{
    autofree char *fresh = text_format("%s.new", name);

    if (symlinkat(id, dir, fresh) == 0)
        return 0;
    if (errno != EEXIST || unlinkat(dir, fresh, 0) < 0 || symlinkat(id, dir, fresh) < 0)
        return error_sys(err, "write the sandbox's %s", name);
    return 0;
}

static int take_link(int dir, const char *name, struct error *err)
{
    autofree char *fresh = text_format("%s.new", name);

    return renameat(dir, fresh, dir, name) < 0 ? error_sys(err, "write the sandbox's %s", name) : 0;
}

static int write_link(int dir, const char *name, const char *id, struct error *err)
{
    return prepare_link(dir, name, id, err) < 0 ? -1 : take_link(dir, name, err);
}

/* There is none yet, unless somebody was interrupted who had the same in mind. */
static int write_intent(int dir, const char *name, const char *id, struct error *err)
{
    if (symlinkat(id, dir, name) == 0)
        return 0;
    return errno == EEXIST ? write_link(dir, name, id, err) : error_sys(err, "write the sandbox's %s", name);
}

int stack_set_top(int sandbox, const char *lid, struct error *err)
{
    return write_link(sandbox, STORE_STACK, lid, err);
}

static int drop_link(int dir, const char *name, struct error *err)
{
    return unlinkat(dir, name, 0) < 0 && errno != ENOENT ? error_sys(err, "remove the sandbox's %s", name) : 0;
}

/* --- moving directories --- */

/* Letter and number. */
static bool is_numbered(const char *name, char letter)
{
    return name[0] == letter && name[1] && !name[1 + strspn(name + 1, "0123456789")];
}

static int list(int dir, char letter, struct strings *out, struct error *err)
{
    int again = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autoclosedir DIR *entries = again < 0 ? NULL : fdopendir(again);

    if (!entries)
        return error_sys(err, "list the sandbox's directories");
    for (const struct dirent *entry; (entry = sys_next_entry(entries));)
        if (is_numbered(entry->d_name, letter))
            strings_add(out, entry->d_name);
    return errno ? error_sys(err, "list the sandbox's directories") : 0;
}

/* The trees that are meant, of those in the sandbox's directory. */
static int list_meant(const struct stack_place *place, char letter, struct strings *out, struct error *err)
{
    if (!place->trees)
        return list(place->sandbox, letter, out, err);
    for (unsigned i = 0; i < STACK_TREES_MAX; i++)
        if (place->trees >> i & 1)
            strings_take(out, text_format("%c%u", letter, i));
    return 0;
}

/* Each under a name of its own: what was set aside before may still be there. */
static int set_aside(const struct stack_place *place, char letter, struct error *err)
{
    autostrings struct strings names = STRINGS_NONE;
    char mark[ID_LENGTH + 1];

    if (store_new_id(mark, err) < 0 || list_meant(place, letter, &names, err) < 0)
        return -1;
    for (size_t i = 0; i < names.len; i++) {
        autofree char *aside = text_format(STACK_ASIDE "%s.%s", mark, names.items[i]);

        if (renameat(place->sandbox, names.items[i], place->sandbox, aside) < 0 && errno != ENOENT)
            return error_sys(err, "set %s aside", names.items[i]);
    }
    return 0;
}

int stack_renew_work(const struct stack_place *place, struct error *err)
{
    return set_aside(place, 'w', err);
}

/* --- freezing --- */

static int set_mode(int dir, const char *name, mode_t mode)
{
    autoclose int fd = sys_open_beneath(dir, name, O_PATH | O_DIRECTORY);

    return fd < 0 ? -1 : chmod(sys_fd_path(fd).text, mode);
}

static int restore_mode(int layer, const char *name)
{
    char link[24], text[16];

    snprintf(link, sizeof link, "m%s", name + 1);
    ssize_t len = readlinkat(layer, link, text, sizeof text - 1);

    if (len < 0)
        return errno == ENOENT ? 0 : -1;
    text[len] = '\0';
    return set_mode(layer, name, (mode_t)strtoul(text, NULL, 8)) < 0 ? -1 : unlinkat(layer, link, 0);
}

static int move_closed(int sandbox, int layer, const char *name)
{
    char link[24], text[16];
    struct stat status;

    if (fstatat(sandbox, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return -1;
    snprintf(link, sizeof link, "m%s", name + 1);
    snprintf(text, sizeof text, "%o", status.st_mode & 07777);
    if (symlinkat(text, layer, link) < 0 && errno != EEXIST) /* there already: the mode before our change */
        return -1;
    if (set_mode(sandbox, name, (status.st_mode & 07777) | 0700) < 0)
        return -1;
    return renameat(sandbox, name, layer, name);
}

static int move_upper(int sandbox, int layer, const char *name, struct error *err)
{
    if (renameat(sandbox, name, layer, name) < 0 && (errno != EACCES || move_closed(sandbox, layer, name) < 0))
        return error_sys(err, "freeze %s", name);
    return 0;
}

/* Moves each, and gives it its mode again. */
static int move_all(const struct stack_place *place, int layer, const struct strings *names, struct error *err)
{
    for (size_t i = 0; i < names->len; i++)
        if (move_upper(place->sandbox, layer, names->items[i], err) < 0)
            return -1;
    for (size_t i = 0; i < names->len; i++)
        if (restore_mode(layer, names->items[i]) < 0)
            return error_sys(err, "freeze the mode of %s", names->items[i]);
    return 0;
}

/* --- fresh directories --- */

struct fresh {
    char name[24];
};

static struct fresh fresh_of(const char *upper)
{
    struct fresh fresh;

    snprintf(fresh.name, sizeof fresh.name, "n%s", upper + 1);
    return fresh;
}

static int make_like(int from, const char *upper, int sandbox, const char *name)
{
    if (mkdirat(sandbox, name, 0700) < 0 && errno != EEXIST)
        return -1;
    return attributes_copy(from, upper, sandbox, name);
}

static int make_fresh(int from, const char *upper, const struct stack_place *place, const char *name,
                      struct error *err)
{
    return make_like(from, upper, place->sandbox, name) < 0 ? error_sys(err, "make a fresh %s", name) : 0;
}

static int open_layer(const struct stack_place *place, const char *lid, struct error *err)
{
    int layer = openat(place->layers, lid, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    return layer < 0 ? error_sys(err, "open the layer %s", lid) : layer;
}

/* Those that were prepared take their places. */
static int place_fresh(const struct stack_place *place, const struct strings *names, struct error *err)
{
    for (size_t i = 0; i < names->len; i++)
        if (renameat(place->sandbox, fresh_of(names->items[i]).name, place->sandbox, names->items[i]) < 0)
            return error_sys(err, "make a fresh %s", names->items[i]);
    return 0;
}

/* The same, but some may have taken theirs, and others may be from an earlier try. */
static int place_again(const struct stack_place *place, int from, const char *upper, const char *name,
                       struct error *err)
{
    if (renameat(place->sandbox, fresh_of(name).name, place->sandbox, name) < 0 && errno != ENOENT &&
        errno != ENOTEMPTY && errno != EEXIST)
        return error_sys(err, "make a fresh %s", name);
    return make_fresh(from, upper, place, name, err);
}

/* --- freezing, from step 3 on --- */

/* Steps 3 and 4, for whoever finds them begun: a mode may wait to be given back to what was moved before. */
static int fill_again(const struct stack_place *place, const char *lid, struct error *err)
{
    autofree char *name = text_format(LAYERS_NEW "%s", lid);
    autoclose int layer = openat(place->layers, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    autostrings struct strings names = STRINGS_NONE, moved = STRINGS_NONE;

    if (layer < 0 && errno == ENOENT)
        return 0; /* they were done */
    if (layer < 0)
        return error_sys(err, "open the new layer");
    if (list(place->sandbox, 'u', &names, err) < 0 || list(layer, 'u', &moved, err) < 0 ||
        move_all(place, layer, &names, err) < 0)
        return -1;
    for (size_t i = 0; i < moved.len; i++)
        if (restore_mode(layer, moved.items[i]) < 0)
            return error_sys(err, "freeze the mode of %s", moved.items[i]);
    return layers_finish(place->layers, lid, err);
}

/* Steps 3 to 7, when some of them were done before. */
static int freeze_on(const struct stack_place *place, const char *lid, struct error *err)
{
    autostrings struct strings names = STRINGS_NONE;

    if (fill_again(place, lid, err) < 0 || write_link(place->sandbox, STORE_STACK, lid, err) < 0)
        return -1;

    autoclose int layer = open_layer(place, lid, err);

    if (layer < 0 || list(layer, 'u', &names, err) < 0)
        return -1;
    for (size_t i = 0; i < names.len; i++)
        if (place_again(place, layer, names.items[i], names.items[i], err) < 0)
            return -1;
    return drop_link(place->sandbox, STORE_FREEZING, err);
}

/* Steps 3 to 7, by whoever has just done the others. */
static int freeze_through(const struct stack_place *place, const char *lid, int layer,
                          const struct strings *names, struct error *err)
{
    if (move_all(place, layer, names, err) < 0 || layers_finish(place->layers, lid, err) < 0 ||
        take_link(place->sandbox, STORE_STACK, err) < 0 || place_fresh(place, names, err) < 0)
        return -1;
    return drop_link(place->sandbox, STORE_FREEZING, err);
}

/* The chain with the new layer on top.  One that would be too long is refused while nothing has happened. */
static int read_chain(const struct stack_place *place, struct strings *chain, struct error *err)
{
    char top[ID_LENGTH + 1];

    strings_add(chain, "");
    for (size_t i = 0; place->known && i < place->known->len; i++)
        strings_add(chain, place->known->items[i]);
    if (!place->known &&
        (stack_top(place->sandbox, top, err) < 0 || layers_chain(place->layers, top, chain, err) < 0))
        return -1;
    if (chain->len > LAYERS_DEPTH_MAX)
        return error_set(err, ERROR_REFUSED, "the sandbox lies on %d layers already; merge them first",
                         LAYERS_DEPTH_MAX);
    return 0;
}

/* Steps 1 and 2.  Gives the new layer's directory. */
static int freeze_begin(const struct stack_place *place, struct layer_info *layer, const struct strings *names,
                        struct error *err)
{
    autoclose int dir = layers_begin(place->layers, layer, place->id, err);

    if (dir < 0)
        return -1;
    for (size_t i = 0; i < names->len; i++)
        if (make_fresh(place->sandbox, names->items[i], place, fresh_of(names->items[i]).name, err) < 0)
            return -1;
    if (prepare_link(place->sandbox, STORE_STACK, layer->id, err) < 0 ||
        write_intent(place->sandbox, STORE_FREEZING, layer->id, err) < 0)
        return -1;
    return steal_fd(&dir);
}

int stack_freeze(const struct stack_place *place, uint64_t step, struct strings *chain, struct error *err)
{
    autoclose int alone = layers_keep_out_sweeps(place->layers, err), dir = -1;
    autostrings struct strings known = STRINGS_NONE, names = STRINGS_NONE;
    struct layer_info layer = { .step = step, .ids = place->ids, .weight = 1 };

    if (alone < 0 || read_chain(place, &known, err) < 0 || list_meant(place, 'u', &names, err) < 0)
        return -1;
    snprintf(layer.sandbox, sizeof layer.sandbox, "%s", place->id);
    snprintf(layer.parent, sizeof layer.parent, "%s", known.len > 1 ? known.items[1] : "");
    dir = freeze_begin(place, &layer, &names, err);
    if (dir < 0 || freeze_through(place, layer.id, dir, &names, err) < 0)
        return error_while(err, "freeze what was written");
    free(known.items[0]);
    known.items[0] = text_copy(layer.id);
    *chain = known;
    known = STRINGS_NONE;
    return 0;
}

/* --- turning --- */

/* The trees that are meant, of those that any layer of the chain has. */
static int list_chain(const struct stack_place *place, const struct strings *chain, struct strings *out,
                      struct error *err)
{
    if (place->trees)
        return list_meant(place, 'u', out, err);
    for (size_t i = 0; i < chain->len; i++) {
        autoclose int layer = open_layer(place, chain->items[i], err);

        if (layer < 0 || list(layer, 'u', out, err) < 0)
            return -1;
    }
    strings_sort(out);
    return 0;
}

/* LID/uK of the newest layer that has it; NULL if none does. */
static char *newest_of(const struct stack_place *place, const struct strings *chain, const char *name)
{
    for (size_t i = 0; i < chain->len; i++) {
        char *path = text_format("%s/%s", chain->items[i], name);

        if (faccessat(place->layers, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            return path;
        free(path);
    }
    return NULL;
}

/* Steps 3 to 6, when some of them were done before. */
static int turn_on(const struct stack_place *place, const char *lid, struct error *err)
{
    autostrings struct strings chain = STRINGS_NONE, names = STRINGS_NONE;
    bool some = strcmp(lid, NO_LAYER) != 0;

    if ((some && layers_chain(place->layers, lid, &chain, err) < 0) ||
        list_chain(place, &chain, &names, err) < 0 || set_aside(place, 'u', err) < 0 ||
        (some ? write_link(place->sandbox, STORE_STACK, lid, err)
              : drop_link(place->sandbox, STORE_STACK, err)) < 0)
        return -1;
    for (size_t i = 0; i < names.len; i++) {
        autofree char *like = newest_of(place, &chain, names.items[i]);

        if (like && place_again(place, place->layers, like, names.items[i], err) < 0)
            return -1;
    }
    return drop_link(place->sandbox, STORE_TURNING, err);
}

/* Steps 3 to 6, by whoever has just done the others. */
static int turn_through(const struct stack_place *place, const char *lid, const struct strings *names,
                        struct error *err)
{
    if (set_aside(place, 'u', err) < 0 ||
        (*lid ? take_link(place->sandbox, STORE_STACK, err) : drop_link(place->sandbox, STORE_STACK, err)) <
            0 ||
        place_fresh(place, names, err) < 0)
        return -1;
    return drop_link(place->sandbox, STORE_TURNING, err);
}

/* Steps 1 and 2; `names` are the trees that get a fresh directory. */
static int turn_begin(const struct stack_place *place, const char *lid, const struct strings *chain,
                      struct strings *names, struct error *err)
{
    autostrings struct strings meant = STRINGS_NONE;

    if (list_chain(place, chain, &meant, err) < 0)
        return -1;
    for (size_t i = 0; i < meant.len; i++) {
        autofree char *like = newest_of(place, chain, meant.items[i]);

        if (!like)
            continue;
        if (make_fresh(place->layers, like, place, fresh_of(meant.items[i]).name, err) < 0)
            return -1;
        strings_add(names, meant.items[i]);
    }
    if (*lid && prepare_link(place->sandbox, STORE_STACK, lid, err) < 0)
        return -1;
    return write_intent(place->sandbox, STORE_TURNING, *lid ? lid : NO_LAYER, err);
}

int stack_turn(const struct stack_place *place, const char *lid, struct strings *chain, struct error *err)
{
    autostrings struct strings known = STRINGS_NONE, names = STRINGS_NONE;

    if (*lid && layers_hold(place->layers, lid, place->id, err) < 0)
        return -1;
    for (size_t i = 0; place->known && i < place->known->len; i++)
        strings_add(&known, place->known->items[i]);
    if (!place->known && layers_chain(place->layers, lid, &known, err) < 0)
        return -1;
    if (turn_begin(place, lid, &known, &names, err) < 0 || turn_through(place, lid, &names, err) < 0)
        return error_while(err, "go back to another layer");
    *chain = known;
    known = STRINGS_NONE;
    return 0;
}

/* --- afterwards --- */

int stack_repair(const struct stack_place *place, struct error *err)
{
    static const struct {
        const char *link;
        int (*go_on)(const struct stack_place *place, const char *lid, struct error *err);
    } intents[] = { { STORE_FREEZING, freeze_on }, { STORE_TURNING, turn_on } };
    char lid[ID_LENGTH + 1];

    for (size_t i = 0; i < ARRAY_LEN(intents); i++) {
        int found = read_link(place->sandbox, intents[i].link, lid, err);

        if (found < 0 || (found && intents[i].go_on(place, lid, err) < 0))
            return error_while(err, "bring to its end what was interrupted");
    }
    return 0;
}

bool stack_is_whole(int sandbox)
{
    return faccessat(sandbox, STORE_FREEZING, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT &&
           faccessat(sandbox, STORE_TURNING, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
}

void stack_clean(int sandbox)
{
    int again = openat(sandbox, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autoclosedir DIR *entries = again < 0 ? NULL : fdopendir(again);
    struct error ignored;

    for (const struct dirent *entry; entries && (entry = sys_next_entry(entries));)
        if (text_starts(entry->d_name, STACK_ASIDE))
            (void)store_remove_tree(sandbox, entry->d_name, &ignored);
}
