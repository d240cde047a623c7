#include "tests/unit/box/world.h"

#include "base/memory.h"
#include "base/own.h"
#include "base/text.h"
#include "tests/support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *const clean[][2] = {
    { "GIT_CONFIG_GLOBAL", "/dev/null" }, { "GIT_CONFIG_SYSTEM", "/dev/null" },
    { "GIT_AUTHOR_NAME", "A" },           { "GIT_AUTHOR_EMAIL", "a@localhost" },
    { "GIT_COMMITTER_NAME", "A" },        { "GIT_COMMITTER_EMAIL", "a@localhost" },
    { "GIT_ALLOW_PROTOCOL", "file" },
};

int world_setup(void **state)
{
    struct world *world = memory_zero(sizeof *world);

    if (unit_scratch_setup((void **)&world->scratch) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(clean); i++)
        setenv(clean[i][0], clean[i][1], 1);
    unit_scratch_dir(world->scratch, "home", 0700);
    unit_scratch_dir(world->scratch, "state", 0700);
    unit_scratch_dir(world->scratch, "run", 0700);
    world->host = (struct host){
        .uid = geteuid(),
        .gid = getegid(),
        .name = text_copy("tester"),
        .home = text_copy(world_path(world, "home")),
        .shell = text_copy("/bin/bash"),
        .cwd = text_copy(world->scratch->path),
        .state = text_copy(world_path(world, "state")),
        .environ = environ,
    };
    world->spec = (struct spec){ .image = text_copy("host"), .directory = text_copy(".") };
    *state = world;
    return 0;
}

int world_teardown(void **state)
{
    struct world *world = *state;

    world_run(world, "chmod -R u+rwX . 2>/dev/null || true");
    host_free(&world->host);
    trees_free(&world->trees);
    free(world->spec.image);
    free(world->spec.directory);
    free(world->spec.cwd);
    free(world->spec.user);
    strings_free(&world->spec.env);
    strings_free(&world->spec.read);
    strings_free(&world->spec.write);
    strings_free(&world->spec.hide);
    for (size_t i = 0; i < world->spec.volumes.len; i++) {
        free(world->spec.volumes.items[i].source);
        free(world->spec.volumes.items[i].target);
    }
    free(world->spec.volumes.items);
    unit_scratch_teardown((void **)&world->scratch);
    free(world);
    return 0;
}

void world_run(const struct world *world, const char *format, ...)
{
    va_list args;
    char *command = NULL;

    va_start(args, format);
    assert_true(vasprintf(&command, format, args) >= 0);
    va_end(args);
    autofree char *line = text_format("cd '%s' && { %s\n} >log 2>&1", world->scratch->path, command);
    int status = system(line);

    if (status != 0)
        fail_msg("%s: status %d, see %s/log", command, status, world->scratch->path);
    free(command);
}

bool world_can_chown(const struct world *world)
{
    const char *path = unit_scratch_file(world->scratch, "given", "");
    bool can = chown(path, 12345, (gid_t)-1) == 0;

    unlink(path);
    return can;
}

const char *world_path(const struct world *world, const char *name)
{
    return unit_scratch_path(world->scratch, name);
}

const struct tree *world_tree(const struct world *world, const char *name)
{
    return trees_at(&world->trees, world_path(world, name));
}
