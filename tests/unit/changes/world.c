#include "tests/unit/changes/world.h"

#include "base/memory.h"
#include "base/own.h"
#include "tests/support/unit.h"
#include "tests/support/unit_scratch.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

int world_setup(void **state)
{
    struct world *world = memory_zero(sizeof *world);
    void *scratch = NULL;

    if (unit_scratch_setup(&scratch) < 0)
        return -1;
    world->scratch = scratch;
    unit_scratch_dir(world->scratch, "base", 0755);
    unit_scratch_dir(world->scratch, "upper", 0755);
    world->source = (struct changes_source){
        .upper = openat(world->scratch->dir, "upper", O_PATH | O_DIRECTORY | O_CLOEXEC),
        .base = openat(world->scratch->dir, "base", O_PATH | O_DIRECTORY | O_CLOEXEC),
        .inside = "/some/tree",
        .hide = &world->hide,
    };
    *state = world;
    return 0;
}

int world_teardown(void **state)
{
    struct world *world = *state;
    void *scratch = world->scratch;

    close(world->source.upper);
    close(world->source.base);
    strings_free(&world->hide);
    changes_free(&world->changes);
    free(world);
    return unit_scratch_teardown(&scratch);
}

void world_run(struct world *world, const char *format, ...)
{
    autofree char *command = NULL, *full = NULL;
    va_list args;

    va_start(args, format);
    assert_true(vasprintf(&command, format, args) >= 0);
    va_end(args);
    full = text_format("cd %s && %s", world->scratch->path, command);
    /* The command is the test's own.  NOLINTNEXTLINE(cert-env33-c) */
    if (system(full) != 0)
        fail_msg("failed: %s", command);
}

void world_whiteout(struct world *world, const char *path)
{
    assert_int_equal(mknodat(world->scratch->dir, path, S_IFCHR, makedev(0, 0)), 0);
}

void world_mark(struct world *world, const char *path, const char *name, const char *value)
{
    autofree char *full =
        text_format("%s.overlay.%s", world->source.marks == CHANGES_MARKS_USER ? "user" : "trusted", name);

    assert_int_equal(setxattr(unit_scratch_path(world->scratch, path), full, value, strlen(value), 0), 0);
}

void world_tick(struct world *world)
{
    struct timespec start, now;

    /* Newer kernels stamp some changes by the finer clock. */
    clock_gettime(CLOCK_REALTIME, &start);
    do
        clock_gettime(CLOCK_REALTIME_COARSE, &now);
    while (now.tv_sec < start.tv_sec || (now.tv_sec == start.tv_sec && now.tv_nsec <= start.tv_nsec));
    world->source.since = now;
}

void world_add_line(struct text *text, const struct change *change)
{
    static const char kinds[] = { [CHANGE_REMOVED] = 'R', [CHANGE_ADDED] = 'A',   [CHANGE_CHANGED] = 'C',
                                  [CHANGE_MODE] = 'M',    [CHANGE_RETYPED] = 'T', [CHANGE_RENAMED] = 'N' };
    static const char *const flags[] = { "EMPTY", "LINK_OUT", "LINK_ABSOLUTE", "HARDLINK",
                                         "SETID", "SPECIAL",  "HIDDEN",        "BASE_CHANGED",
                                         "TWIN",  "NAME_ODD", "UNREADABLE" };

    text_addf(text, "%c ", kinds[change->kind]);
    text_add_inert(text, change->path);
    if (change->from)
        text_addf(text, " < %s", change->from);
    if (change->count)
        text_addf(text, " +%llu", (unsigned long long)change->count);
    for (size_t i = 0; i < ARRAY_LEN(flags); i++)
        if (change->flags & 1u << i)
            text_addf(text, " %s", flags[i]);
    text_add(text, "\n");
}

void world_scan(struct world *world)
{
    changes_free(&world->changes);
    if (changes_scan(&world->source, &world->changes, &world->err) < 0)
        fail_msg("%s", world->err.text);
}

void world_expect(struct world *world, const char *want)
{
    autotext struct text got = TEXT_NONE;

    world_scan(world);
    for (size_t i = 0; i < world->changes.len; i++)
        world_add_line(&got, &world->changes.items[i]);
    assert_string_equal(text_string(&got), want);
}

const struct change *world_change(const struct world *world, const char *path)
{
    for (size_t i = 0; i < world->changes.len; i++)
        if (strcmp(world->changes.items[i].path, path) == 0)
            return &world->changes.items[i];
    return NULL;
}
