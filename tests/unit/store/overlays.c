#include "tests/unit/store/overlays.h"

#include "base/own.h"
#include "base/text.h"
#include "tests/support/unit_chance.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

bool overlays_as_root;

void overlays_freeze(struct world *world, uint64_t step, char lid[ID_LENGTH + 1])
{
    autostrings struct strings chain = STRINGS_NONE;

    MUST(stack_freeze(&world->place, step, &chain, &world->err));
    snprintf(lid, ID_LENGTH + 1, "%s", chain.items[0]);
}

int overlays_setup(void **state)
{
    struct world *world = memory_zero(sizeof *world);

    *state = world;
    if (unit_scratch_setup((void **)&world->scratch) < 0)
        return -1;
    unit_scratch_dir(world->scratch, "base", 0755);
    unit_scratch_dir(world->scratch, "merged", 0755);
    MUST(store_create(unit_scratch_path(world->scratch, "state"), &world->dir, &world->err));
    world->place = (struct stack_place){ layers_open(unit_scratch_path(world->scratch, "state"), &world->err),
                                         world->dir.fd, world->dir.id };
    assert_int_equal(mkdirat(world->dir.fd, "u0", 0755), 0);
    return chdir(world->scratch->path);
}

int overlays_teardown(void **state)
{
    struct world *world = *state;

    assert_int_equal(chdir("/"), 0);
    umount2(unit_scratch_path(world->scratch, "merged"), MNT_DETACH);
    MUST(store_remove(&world->dir, &world->err));
    MUST(store_remove_tree(world->scratch->dir, "state", &world->err));
    close(world->place.layers);
    unit_scratch_teardown((void **)&world->scratch);
    free(world);
    return 0;
}

void overlays_mount(struct world *world, const char *lowers, bool writable)
{
    autotext struct text options = TEXT_NONE;

    text_addf(&options, "%slowerdir=%s", overlays_as_root ? "" : "userxattr,", lowers);
    if (writable) {
        MUST(stack_renew_work(&world->place, &world->err));
        assert_int_equal(mkdirat(world->dir.fd, "w0", 0700), 0);
        text_addf(&options, ",upperdir=state/sandboxes/%s/u0,workdir=state/sandboxes/%s/w0,volatile%s",
                  world->dir.id, world->dir.id, CHANCE_OPTIONS(overlays_as_root));
    }
    if (mount("overlay", "merged", "overlay", 0, text_string(&options)) < 0)
        fail_msg("mount an overlay (%s): %s", text_string(&options), strerror(errno));
}

void overlays_unmount(void)
{
    if (umount2("merged", 0) < 0)
        fail_msg("unmount: %s", strerror(errno));
}

char *overlays_lowers(struct world *world)
{
    autostrings struct strings chain = STRINGS_NONE;
    struct text all = TEXT_NONE;
    char top[ID_LENGTH + 1];

    MUST(stack_top(world->dir.fd, top, &world->err));
    MUST(layers_chain(world->place.layers, top, &chain, &world->err));
    for (size_t i = 0; i < chain.len; i++)
        text_addf(&all, "state/layers/%s/u0:", chain.items[i]);
    text_add(&all, "base");
    return text_steal(&all);
}

static struct strings *listing;

static int list_one(const char *path, const struct stat *status, int type, struct FTW *at)
{
    autotext struct text line = TEXT_NONE;
    char content[4096] = "", note[64] = "";
    bool directory = S_ISDIR(status->st_mode);

    (void)at;
    if (type == FTW_NS)
        fail_msg("%s is listed and not there", path);
    if (S_ISLNK(status->st_mode) && readlink(path, content, sizeof content - 1) < 0)
        fail_msg("read the link %s", path);
    if (S_ISREG(status->st_mode)) {
        autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);

        if (fd < 0 || read(fd, content, sizeof content - 1) < 0)
            fail_msg("read %s", path);
    }
    if (!S_ISLNK(status->st_mode))
        (void)!lgetxattr(path, "user.note", note, sizeof note - 1);
    text_addf(&line, "%s %o %u %u %lld %lld.%09ld %s [%s]\n", path, status->st_mode, status->st_uid,
              status->st_gid, directory ? 0LL : (long long)status->st_size, (long long)status->st_mtim.tv_sec,
              status->st_mtim.tv_nsec, content, note);
    strings_add(listing, text_string(&line));
    return 0;
}

char *overlays_look(void)
{
    autostrings struct strings lines = STRINGS_NONE;
    struct text all = TEXT_NONE;

    listing = &lines;
    nftw("merged", list_one, 16, FTW_PHYS);
    strings_sort(&lines);
    for (size_t i = 0; i < lines.len; i++)
        text_add(&all, lines.items[i]);
    return text_steal(&all);
}

char *overlays_look_at(struct world *world, const char *layers)
{
    autofree char *doubled = text_format("%s%s", layers, strchr(layers, ':') ? "" : ":state/images/empty");

    overlays_mount(world, doubled, false);

    char *seen = overlays_look();

    overlays_unmount();
    return seen;
}

bool overlays_begin(int argc, char **argv)
{
    overlays_as_root = argc == 2 && strcmp(argv[1], "root") == 0;
    umask(022);
    if (argc == 2 && (!overlays_as_root || geteuid() == 0) && chance_enter_namespaces(overlays_as_root))
        return true;
    printf("1..0 # SKIP cannot be %s here\n", argc > 1 ? argv[1] : "nobody");
    return false;
}
