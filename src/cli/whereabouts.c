#include "cli/whereabouts.h"

#include "base/error.h"
#include "box/place.h"
#include "box/tree.h"
#include "cli/say.h"
#include "keeper/record.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

static bool has_workspace(const struct record *record)
{
    for (size_t i = 0; i < record->layers.len; i++)
        if (strcmp(record->layers.items[i].why, TREE_WHY_WORKSPACE) == 0)
            return true;
    return false;
}

static bool is_it(const struct record *record, const struct place *place)
{
    return place->fd >= 0 && place->stat.st_dev == record->workspace_device &&
           place->stat.st_ino == record->workspace_inode;
}

/* Another copy: its own identity is what is compared from now on. */
static void take_instead(struct record *record, const struct place *place)
{
    for (size_t i = 0; i < record->layers.len; i++)
        if (strcmp(record->layers.items[i].why, TREE_WHY_WORKSPACE) == 0) {
            record->layers.items[i].device = place->stat.st_dev;
            record->layers.items[i].inode = place->stat.st_ino;
        }
    record_move(record, place->path);
}

static int not_found(const struct record *record, const struct place *there, int number, struct error *err)
{
    errno = number;
    if (there->fd < 0 && number != ENOENT && number != ENOTDIR)
        return error_sys(err, "open the workspace %.200s", record->workspace);
    if (there->fd >= 0)
        error_set(err, ERROR_REFUSED,
                  "%.200s is not the directory that the sandbox was started on; it was replaced since",
                  record->workspace);
    else
        error_set(err, ERROR_REFUSED, "the workspace %.200s is not there any more", record->workspace);
    return error_hint(err,
                      "if it was moved, say this again in its new place; to another copy of it the changes "
                      "come with cove apply --to DIR %.12s",
                      record->id);
}

int whereabouts_find(struct record *record, const char *here, const char *to, struct error *err)
{
    const char *const elsewhere[] = { to, here };
    autoplace struct place there = PLACE_NONE, copy = PLACE_NONE;

    if (!has_workspace(record))
        return 0;
    if (place_open(AT_FDCWD, record->workspace, &there) == 0 && is_it(record, &there) &&
        strcmp(there.path, record->workspace) == 0)
        return 0;

    int number = errno;

    for (size_t i = 0; i < ARRAY_LEN(elsewhere); i++) {
        autoplace struct place place = PLACE_NONE;

        if (elsewhere[i] && place_open(AT_FDCWD, elsewhere[i], &place) == 0 && is_it(record, &place)) {
            record_move(record, place.path);
            return 0;
        }
    }
    if (!to || place_open(AT_FDCWD, to, &copy) < 0)
        return not_found(record, &there, number, err);
    say_warning("the workspace %.200s is not there any more; what the sandbox wrote is compared with %.200s",
                record->workspace, copy.path);
    take_instead(record, &copy);
    return 0;
}
