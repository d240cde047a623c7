/* Which ids a sandbox has, and what they are outside.
 *
 * Host uid 0 is never among them: with it mapped, and no capability left, the kernel lets a
 * process write /proc/sys (it compares the global uid).  Root therefore maps a range of ids that
 * nobody uses; an ordinary user maps their own id onto itself, and onto 0 when they ask for root
 * in an image of theirs. */

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "box/host.h"
#include "box/plan.h"
#include "box/private_dir.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* 2048 ranges above everything that users, services and other container tools are given. */
enum { BASE_FIRST = 0x70000000, BASE_RANGES = 2048 };

/* With fewer ids an image's own users would not fit. */
enum { SUBORDINATE_LEAST = 1000 };

static bool is_root(const struct spec *spec)
{
    return spec->user && strcmp(spec->user, "root") == 0;
}

/* A number or number:number; its form was checked when the spec was read. */
static void wanted_ids(const struct spec *spec, uint32_t *uid, uint32_t *gid)
{
    char *rest;

    if (!spec->user)
        return;
    if (is_root(spec)) {
        *uid = *gid = 0;
        return;
    }
    *uid = *gid = (uint32_t)strtoul(spec->user, &rest, 10);
    if (*rest == ':')
        *gid = (uint32_t)strtoul(rest + 1, NULL, 10);
}

/* A range that was chosen before comes from a file.  What it must not say is one of the machine's own. */
static int choose_base(const struct host *host, uint32_t *base, struct error *err)
{
    uint32_t above = host->id_base - BASE_FIRST;
    uint16_t random;

    if (host->id_base && (host->id_base < BASE_FIRST || above % ID_RANGE || above / ID_RANGE >= BASE_RANGES))
        return error_set(err, ERROR_INVALID, "%u is not the beginning of a range of ids of ours",
                         host->id_base);
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        return error_sys(err, "get random bytes");
    *base = host->id_base ? host->id_base : BASE_FIRST + (uint32_t)(random % BASE_RANGES) * ID_RANGE;
    return 0;
}

static int choose_shifted(const struct spec *spec, const struct host *host, struct ids *ids, struct error *err)
{
    if (choose_base(host, &ids->base, err) < 0)
        return -1;
    ids->shifted = true;
    ids->rows = 1;
    ids->uids[0] = ids->gids[0] = (struct id_row){ 0, ids->base, ID_RANGE };
    ids->init = ID_INIT;
    wanted_ids(spec, &ids->uid, &ids->gid);
    if (ids->uid >= ID_INIT || ids->gid >= ID_INIT)
        return error_set(err, ERROR_INVALID, "user %s: ids go up to %d", spec->user, ID_INIT - 1);
    return 0;
}

/* First range of `name` (or its number) in /etc/subuid or /etc/subgid. */
static bool find_subordinate(const char *file, const struct host *host, struct id_row *row)
{
    FILE *lines = fopen(file, "re");
    autofree char *number = text_format("%u", host->uid);
    char line[256];
    bool found = false;

    while (lines && !found && fgets(line, sizeof line, lines)) {
        char *rest = strchr(line, ':');

        if (!rest)
            continue;
        *rest++ = '\0';
        if (strcmp(line, host->name) != 0 && strcmp(line, number) != 0)
            continue;
        unsigned long first = strtoul(rest, &rest, 10), count = *rest == ':' ? strtoul(rest + 1, NULL, 10) : 0;

        if (first > 0 && first < UINT32_MAX && count >= SUBORDINATE_LEAST) {
            *row = (struct id_row){ 1, (uint32_t)first, count < ID_RANGE - 1 ? (uint32_t)count : ID_RANGE - 1 };
            found = true;
        }
    }
    if (lines)
        fclose(lines);
    return found;
}

/* Root inside for an ordinary user: 0 is the user; with subordinate ids the rest is a range. */
static void choose_user_root(const struct host *host, struct ids *ids)
{
    ids->uids[0] = (struct id_row){ 0, host->uid, 1 };
    ids->gids[0] = (struct id_row){ 0, host->gid, 1 };
    ids->uid = ids->gid = ids->init = 0;
    ids->rows = 1;
    if (access("/usr/bin/newuidmap", X_OK) == 0 && access("/usr/bin/newgidmap", X_OK) == 0 &&
        private_dir_initial_namespace() && /* in another one they are nobody's to give */
        find_subordinate("/etc/subuid", host, &ids->uids[1]) &&
        find_subordinate("/etc/subgid", host, &ids->gids[1])) {
        ids->helpers = true;
        ids->rows = 2;
    }
}

static int choose_user(const struct spec *spec, const struct host *host, struct ids *ids, struct error *err)
{
    if (is_root(spec) && strcmp(spec->image, "host") == 0)
        return error_set(
            err, ERROR_REFUSED,
            "--root on the host image needs to be root outside: its files belong to a user who cannot be "
            "mapped; use --image DIR with an unpacked image, or run it with sudo");
    if (is_root(spec)) {
        choose_user_root(host, ids);
        return 0;
    }
    ids->uid = host->uid;
    ids->gid = host->gid;
    wanted_ids(spec, &ids->uid, &ids->gid);
    if (ids->uid != host->uid || ids->gid != host->gid)
        return error_set(err, ERROR_REFUSED,
                         "user %s: an ordinary user can only be themselves (%u:%u) or, in an image, root",
                         spec->user, host->uid, host->gid);
    ids->uids[0] = (struct id_row){ host->uid, host->uid, 1 };
    ids->gids[0] = (struct id_row){ host->gid, host->gid, 1 };
    ids->init = host->uid;
    ids->rows = 1;
    return 0;
}

int ids_choose(const struct spec *spec, const struct host *host, struct ids *ids, struct error *err)
{
    *ids = (struct ids){ 0 };
    if (is_root(spec) && !spec->root)
        return error_set(err, ERROR_REFUSED, "--root: the policy says `root: false`");
    return host->root ? choose_shifted(spec, host, ids, err) : choose_user(spec, host, ids, err);
}
