/* Gives a process in a new user namespace its ids. */

#include "box/idmap.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "box/plan.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static int write_map(pid_t pid, const char *file, const struct id_row *rows, size_t count, struct error *err)
{
    autofree char *path = text_format("/proc/%d/%s", pid, file);
    autotext struct text content = TEXT_NONE;

    for (size_t i = 0; i < count; i++)
        text_addf(&content, "%u %u %u\n", rows[i].inside, rows[i].outside, rows[i].count);
    return sys_write_file(AT_FDCWD, path, text_string(&content)) < 0 ? error_sys(err, "write %s", file) : 0;
}

static int spawn(const char *program, char *const *argv, char *const *envp, int said, int *status)
{
    posix_spawn_file_actions_t actions;
    pid_t child;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, said, STDERR_FILENO);
    errno = posix_spawn(&child, program, &actions, NULL, argv, envp);
    posix_spawn_file_actions_destroy(&actions);
    return errno != 0 || waitpid(child, status, 0) < 0 ? -1 : 0;
}

/* With the first line of what it said about it. */
static int refused_by(const char *program, int said, struct error *err)
{
    char why[200] = "";

    (void)!pread(said, why, sizeof why - 1, 0);
    why[strcspn(why, "\n")] = '\0';
    return error_set(err, ERROR_UNSUPPORTED, "%s refused the ids of /etc/subuid and /etc/subgid%s%s", program,
                     *why ? ": " : "", why);
}

/* newuidmap and newgidmap are setuid programs of the system, which check /etc/subuid for us. */
static int run_map_helper(const char *program, pid_t pid, const struct id_row *rows, struct error *err)
{
    autostrings struct strings argv = STRINGS_NONE;
    char *none[] = { NULL };
    int status = -1;

    strings_add(&argv, program);
    strings_take(&argv, text_format("%d", pid));
    for (size_t i = 0; i < 2; i++) {
        strings_take(&argv, text_format("%u", rows[i].inside));
        strings_take(&argv, text_format("%u", rows[i].outside));
        strings_take(&argv, text_format("%u", rows[i].count));
    }

    autoclose int said = memfd_create("cove-said", MFD_CLOEXEC);

    if (said < 0 || spawn(program, argv.items, none, said, &status) < 0)
        return error_sys(err, "run %s", program);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return refused_by(program, said, err);
    return 0;
}

int idmap_write(const struct ids *ids, pid_t pid, struct error *err)
{
    if (ids->helpers) {
        if (run_map_helper("/usr/bin/newuidmap", pid, ids->uids, err) < 0)
            return -1;
        return run_map_helper("/usr/bin/newgidmap", pid, ids->gids, err);
    }
    if (write_map(pid, "uid_map", ids->uids, ids->rows, err) < 0)
        return -1;
    return write_map(pid, "gid_map", ids->gids, ids->rows, err);
}

int idmap_own(const struct ids *ids, struct error *err)
{
    char uids[64], gids[64];

    snprintf(uids, sizeof uids, "%u %u 1", ids->uids[0].inside, ids->uids[0].outside);
    snprintf(gids, sizeof gids, "%u %u 1", ids->gids[0].inside, ids->gids[0].outside);
    if (sys_write_file(AT_FDCWD, "/proc/self/setgroups", "deny") < 0 && errno != ENOENT)
        return error_sys(err, "deny setgroups");
    if (sys_write_file(AT_FDCWD, "/proc/self/uid_map", uids) < 0 ||
        sys_write_file(AT_FDCWD, "/proc/self/gid_map", gids) < 0)
        return error_sys(err, "map the user's ids");
    return 0;
}

static _Noreturn void act_when_mapped(int go, int (*act)(void *argument), void *argument)
{
    char byte;

    if (read(go, &byte, 1) != 1)
        _exit(1);
    _exit(act(argument) < 0 ? 1 : 0);
}

int idmap_run(const struct ids *ids, int (*act)(void *argument), void *argument, struct error *err)
{
    int go[2], status = -1;
    autoclose int pidfd = -1;

    if (pipe2(go, O_CLOEXEC) < 0)
        return error_sys(err, "make a pipe");
    autoclose int hear = go[0], tell = go[1];
    pid_t pid = sys_clone(CLONE_NEWUSER, -1, &pidfd);

    if (pid < 0)
        return error_sys(err, "make a user namespace");
    if (pid == 0) {
        close(tell); /* so that our death is its own */
        act_when_mapped(hear, act, argument);
    }

    int mapped = idmap_write(ids, pid, err);

    if (mapped == 0 && write(tell, "", 1) != 1)
        mapped = error_sys(err, "wake a process with the sandbox's ids");
    close(steal_fd(&tell));
    if (waitpid(pid, &status, 0) < 0)
        return error_sys(err, "wait for a process with the sandbox's ids");
    if (mapped < 0)
        return -1;
    return status == 0 ? 0 : error_set(err, ERROR_SYSTEM, "it failed with the sandbox's ids");
}
