/* Which groups we are in stands in /proc/self/cgroup, where their trees are mounted in
 * /proc/self/mountinfo.
 *
 * In the one tree of v2 a group that has processes gives its children no controller, so a new group
 * does not go below our own but below the nearest one above that hands out what is wanted.  To move
 * into it we must be allowed to write that one's cgroup.procs too: it is what both groups have in common.
 *
 * Where a service manager looks after that tree, it is asked, unless the place was delegated.
 *
 * Going up, or to the manager, leaves groups.  One that bounds memory or processors is not left: who asks for a
 * limit must not lose one. */

#include "limits/place.h"

#include "base/array.h"
#include "base/own.h"
#include "base/text.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

static const char *const names[CONTROLLER_COUNT] = {
    [CONTROLLER_MEMORY] = "memory", [CONTROLLER_CPU] = "cpu", [CONTROLLER_PIDS] = "pids"
};

const char *controller_name(enum controller controller)
{
    return names[controller];
}

void cgroup_place_free(struct cgroup_place *place)
{
    for (size_t i = 0; i < CONTROLLER_COUNT; i++)
        free(place->dirs[i]);
    *place = CGROUP_PLACE_NONE;
}

/* A file of /proc or a cgroup: their size is 0 until they are read. */
static char *read_all(const struct cgroup_world *world, const char *path)
{
    autofree char *whole = text_format("%s%s", world->root, path);
    autoclose int fd = open(whole, O_RDONLY | O_CLOEXEC);
    struct text out = TEXT_NONE;
    char part[4096];
    ssize_t got;

    if (fd < 0)
        return NULL;
    while ((got = read(fd, part, sizeof part)) > 0)
        text_add_bytes(&out, part, (size_t)got);
    return text_steal(&out);
}

static bool may_write(const struct cgroup_world *world, const char *dir, const char *file)
{
    autofree char *path = text_format("%s%s/%s", world->root, dir, file);

    return access(path, W_OK) == 0;
}

/* Whether a list of words, parted by one of `between`, has this one. */
static bool has_word(const char *list, const char *word, const char *between)
{
    while (list && *list) {
        size_t len = strcspn(list, between);

        if (len == strlen(word) && memcmp(list, word, len) == 0)
            return true;
        list += len + (list[len] != '\0');
    }
    return false;
}

static unsigned controllers_of(const struct cgroup_world *world, const char *dir, const char *file)
{
    autofree char *path = text_format("%s/%s", dir, file), *list = read_all(world, path);
    unsigned found = 0;

    for (unsigned i = 0; list && i < CONTROLLER_COUNT; i++)
        found |= has_word(list, names[i], " \n") ? 1U << i : 0;
    return found;
}

/* One line of /proc/self/cgroup, "4:memory:/path"; v2: "0::/path". */
static char *own_path(const char *groups, const char *controller)
{
    while (groups && *groups) {
        size_t len = strcspn(groups, "\n");
        autofree char *line = text_format("%.*s", (int)len, groups);
        char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;

        groups += len + (groups[len] != '\0');
        if (!path)
            continue;
        *path++ = '\0';
        if (*controller ? has_word(list + 1, controller, ",") : !list[1])
            return text_copy(path);
    }
    return NULL;
}

/* Where the tree of a controller ("" for v2) is mounted, and which part of it. */
static bool find_mount(const char *mounts, const char *controller, char **mount, char **part)
{
    while (mounts && *mounts) {
        char root[512], target[512], kind[32], options[512];
        size_t len = strcspn(mounts, "\n");
        autofree char *line = text_format("%.*s", (int)len, mounts);
        const char *rest = strstr(line, " - ");

        mounts += len + (mounts[len] != '\0');
        if (!rest || sscanf(line, "%*d %*d %*s %511s %511s", root, target) != 2 ||
            sscanf(rest, " - %31s %*s %511s", kind, options) != 2)
            continue;
        if (strcmp(kind, *controller ? "cgroup" : "cgroup2") != 0 ||
            (*controller && !has_word(options, controller, ",")))
            continue;
        *mount = text_copy(target);
        *part = text_copy(root);
        return true;
    }
    return false;
}

/* Our own group as a directory; `mount` is where its tree begins. */
static char *own_dir(const char *groups, const char *mounts, const char *controller, char **mount)
{
    autofree char *path = own_path(groups, controller), *part = NULL, *at = NULL;
    const char *below = path;

    /* Above the root of our cgroup namespace nothing has a path. */
    if (!path || text_starts(path, "/..") || !find_mount(mounts, controller, &at, &part))
        return NULL;
    if (strcmp(part, "/") != 0) {
        if (!path_within(path, part))
            return NULL;
        below = path + strlen(part);
    }
    *mount = text_copy(at);
    return text_format("%s%s", at, strcmp(below, "/") == 0 ? "" : below);
}

static void find_v1(const struct cgroup_world *world, const char *groups, const char *mounts, unsigned wanted,
                    struct cgroup_place *out)
{
    out->kind = CGROUP_V1;
    for (unsigned i = 0; i < CONTROLLER_COUNT; i++) {
        autofree char *mount = NULL, *dir = NULL;

        if (!(wanted >> i & 1))
            continue;
        dir = own_dir(groups, mounts, names[i], &mount);
        if (!dir || !may_write(world, dir, ".") || !may_write(world, dir, "tasks"))
            continue;
        out->have |= 1U << i;
        out->dirs[i] = steal_ptr(&dir);
    }
}

/* Whether more controllers can be handed out by a group: it is the tree's root, or has no process itself. */
static bool may_hand_out(const struct cgroup_world *world, const char *dir)
{
    autofree char *type = text_format("%s/cgroup.type", dir), *procs = text_format("%s/cgroup.procs", dir);
    autofree char *kind = read_all(world, type), *inside = read_all(world, procs);

    return may_write(world, dir, "cgroup.subtree_control") && (!kind || (inside && !*inside));
}

/* Which controllers a new group below `dir` could have, and which of these without further ado. */
static unsigned offered_by(const struct cgroup_world *world, const char *dir, unsigned wanted, unsigned *given)
{
    *given = controllers_of(world, dir, "cgroup.subtree_control") & wanted;
    if (!may_write(world, dir, ".") || !may_write(world, dir, "cgroup.procs"))
        return 0;
    if (*given == wanted || !may_hand_out(world, dir))
        return *given;
    return *given | (controllers_of(world, dir, "cgroup.controllers") & wanted);
}

/* The number of processes is no reason: systemd bounds it for everybody. */
static bool is_bounded(const struct cgroup_world *world, const char *dir)
{
    static const char *const files[] = { "memory.max", "memory.high", "cpu.max" };

    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        autofree char *path = text_format("%s/%s", dir, files[i]), *value = read_all(world, path);

        if (value && *value >= '0' && *value <= '9')
            return true;
    }
    return false;
}

/* Gives the group in which we have to stay, or NULL; the caller frees. */
static char *find_v2(const struct cgroup_world *world, const char *groups, const char *mounts, unsigned wanted,
                     struct cgroup_place *out)
{
    autofree char *mount = NULL, *own = own_dir(groups, mounts, "", &mount);
    autofree char *dir = own ? text_copy(own) : NULL;
    size_t best = 0; /* its length: all are beginnings of our own */

    while (dir && path_within(dir, mount)) {
        unsigned given, offered = offered_by(world, dir, wanted, &given);

        if (__builtin_popcount(offered) > __builtin_popcount(out->have)) {
            out->have = offered;
            out->enable = offered & ~given;
            best = strlen(dir);
        }
        if (strcmp(dir, mount) == 0 || is_bounded(world, dir))
            break;
        *strrchr(dir, '/') = '\0';
    }
    if (out->have) {
        out->kind = CGROUP_V2;
        out->dirs[0] = text_format("%.*s", (int)best, own);
    }
    return steal_ptr(&dir);
}

/* Who looks after the tree takes a controller back when no unit of theirs needs it any more, and with it the
 * limits of groups that they do not know.  A unit of theirs that was delegated they leave alone. */
static bool is_delegated(const struct cgroup_world *world, const char *dir)
{
    static const char *const units[] = { ".slice", ".scope", ".service" };
    autofree char *at = text_format("%s%s", world->root, dir);
    size_t top = strlen(world->root);

    for (char *slash = strrchr(at, '/'); slash && slash > at + top; slash = strrchr(at, '/')) {
        char value[2];

        for (size_t i = 0; i < ARRAY_LEN(units); i++)
            if (text_ends(at, units[i]))
                return !text_starts(slash, "/user@") &&
                       getxattr(at, "user.delegate", value, sizeof value) == 1 && *value == '1';
        *slash = '\0';
    }
    return false;
}

static void find_manager(const struct cgroup_world *world, const char *mounts, const char *within,
                         unsigned wanted, struct cgroup_place *out)
{
    autofree char *socket = world->uid ? text_format("/run/user/%u/systemd/private", world->uid)
                                       : text_copy("/run/systemd/private");
    autofree char *mount = NULL, *part = NULL, *dir = NULL;

    if (!may_write(world, "", socket + 1) || !find_mount(mounts, "", &mount, &part))
        return;
    dir = world->uid ? text_format("%s/user.slice/user-%u.slice/user@%u.service", mount, world->uid, world->uid)
                     : text_copy(mount);
    if (within && !path_within(dir, within))
        return;
    out->kind = CGROUP_MANAGER;
    out->have = controllers_of(world, dir, "cgroup.controllers") & wanted;
    out->dirs[0] = steal_ptr(&socket);
}

/* `even`: also if it only has as many. */
static void take_better(struct cgroup_place *offered, bool even, struct cgroup_place *best)
{
    if (offered->have && __builtin_popcount(offered->have) + even > __builtin_popcount(best->have)) {
        cgroup_place_free(best);
        *best = *offered;
        *offered = CGROUP_PLACE_NONE;
        return;
    }
    cgroup_place_free(offered);
}

void cgroup_place_find_in(const struct cgroup_world *world, unsigned wanted, struct cgroup_place *out)
{
    autofree char *groups = read_all(world, "/proc/self/cgroup"),
                  *mounts = read_all(world, "/proc/self/mountinfo");
    struct cgroup_place offered = CGROUP_PLACE_NONE;

    *out = CGROUP_PLACE_NONE;
    autofree char *within = find_v2(world, groups, mounts, wanted, out);

    if (!out->have || !is_delegated(world, out->dirs[0])) {
        find_manager(world, mounts, within, wanted, &offered);
        take_better(&offered, true, out);
    }
    if (out->have == wanted)
        return;
    offered = CGROUP_PLACE_NONE;
    find_v1(world, groups, mounts, wanted, &offered);
    take_better(&offered, false, out);
}

char *cgroup_dir_of(pid_t pid, const char *controller)
{
    const struct cgroup_world world = { .root = "" };
    autofree char *path = text_format("/proc/%d/cgroup", pid), *groups = read_all(&world, path);
    autofree char *mounts = read_all(&world, "/proc/self/mountinfo"), *mount = NULL;

    return own_dir(groups, mounts, controller, &mount);
}

/* A group without a controller may lie below one that has processes, so it goes below our own: what bounds us
 * bounds it. */
char *cgroup_place_freezer_in(const struct cgroup_world *world, bool v1)
{
    autofree char *groups = read_all(world, "/proc/self/cgroup"),
                  *mounts = read_all(world, "/proc/self/mountinfo"), *mount = NULL;
    autofree char *dir = own_dir(groups, mounts, v1 ? "freezer" : "", &mount);

    if (!dir || !may_write(world, dir, ".") || !may_write(world, dir, v1 ? "tasks" : "cgroup.procs"))
        return NULL;
    return steal_ptr(&dir);
}

char *cgroup_place_freezer(bool v1)
{
    return cgroup_place_freezer_in(&(struct cgroup_world){ .root = "", .uid = getuid() }, v1);
}

void cgroup_place_find(unsigned wanted, struct cgroup_place *out)
{
    cgroup_place_find_in(&(struct cgroup_world){ .root = "", .uid = getuid() }, wanted, out);
}
