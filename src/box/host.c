#include "box/host.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "box/private_dir.h"
#include "sys/sys.h"

#include <limits.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>

/* What root needs to hand a sandbox ids of its own: to write the maps, to give it its files and
 * to prepare its mounts. */
#define ABILITY                                                                                                \
    (1ULL << CAP_SYS_ADMIN | 1ULL << CAP_SETUID | 1ULL << CAP_SETGID | 1ULL << CAP_CHOWN |                     \
     1ULL << CAP_DAC_OVERRIDE)

/* Everything below trusts what /proc says: somebody who mounts a look-alike there must not be
 * able to tell us who we are. */
static int check_proc(struct error *err)
{
    struct statfs found;

    if (statfs("/proc/self", &found) < 0)
        return error_sys(err, "look at /proc");
    if (found.f_type != PROC_SUPER_MAGIC)
        return error_set(err, ERROR_UNSUPPORTED, "/proc is not the kernel's: mount proc there");
    return 0;
}

/* Files of /proc/sys belong to uid 0 of the machine, whatever namespace looks at them. */
static bool is_machine_root(uid_t uid)
{
    struct stat found;

    return stat("/proc/sys/kernel/core_pattern", &found) == 0 && found.st_uid == uid;
}

static int read_ability(struct host *host, struct error *err)
{
    uint64_t effective = 0, permitted, inheritable;

    if (sys_capabilities_get(&effective, &permitted, &inheritable) < 0)
        return error_sys(err, "read our capabilities");
    host->root = (effective & ABILITY) == ABILITY && private_dir_initial_namespace();
    if (!host->root && is_machine_root(host->uid)) {
        error_set(
            err, ERROR_UNSUPPORTED,
            "this is uid 0 of the machine, but without the capabilities SYS_ADMIN, SETUID, SETGID, CHOWN and "
            "DAC_OVERRIDE, so the sandbox would have to run as uid 0 of the machine too");
        return error_hint(err, "run cove as an ordinary user, or as root with these capabilities");
    }
    return 0;
}

static bool owned_by(const char *path, uid_t uid)
{
    struct stat found;

    return path && *path == '/' && stat(path, &found) == 0 && S_ISDIR(found.st_mode) && found.st_uid == uid;
}

/* Nearly every user stands in /etc/passwd.  Those that only a name service knows are what their
 * environment says: to ask the service would load its libraries into us. */
static const struct passwd *find_user(uid_t uid)
{
    FILE *file = fopen("/etc/passwd", "re");
    const struct passwd *entry = NULL;

    while (file && (entry = fgetpwent(file)) && entry->pw_uid != uid)
        continue;
    if (file)
        fclose(file);
    return entry;
}

static const char *absolute(const char *variable)
{
    const char *value = getenv(variable);

    return value && *value == '/' ? value : NULL;
}

/* A name that can stand in a line of passwd; NULL else. */
static const char *plain_name(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

    return name && *name && *name != '-' && strlen(name) < 64 && !name[strspn(name, letters)] ? name : NULL;
}

/* $HOME is what every tool goes by, so it counts first, but only if it is this user's; then what the
 * password database says. */
static void read_user(struct host *host)
{
    const struct passwd *entry = find_user(host->uid);
    const char *said = absolute("HOME");
    const char *home = said && owned_by(said, host->uid) ? said : entry ? entry->pw_dir : NULL;

    const char *name = entry ? entry->pw_name : plain_name(getenv("USER"));
    const char *shell = entry ? entry->pw_shell : absolute("SHELL");

    host->name = text_copy(name && *name ? name : "user");
    host->shell = text_copy(shell && *shell == '/' && access(shell, X_OK) == 0 ? shell : "/bin/sh");
    host->home = owned_by(home, host->uid) ? realpath(home, NULL) : NULL;
    if (!host->home)
        host->home = text_copy("/");
}

static int read_cwd(struct host *host, struct error *err)
{
    host->cwd = getcwd(NULL, 0);
    if (!host->cwd) {
        error_sys(err, "find the current directory");
        return error_hint(err, "cd to a directory that exists");
    }
    if (host->cwd[0] != '/')
        return error_set(err, ERROR_INVALID,
                         "the current directory cannot be reached from /; cd to another one");
    return 0;
}

/* NULL unless the variable holds an absolute path: the XDG specification says to ignore others. */
static char *choose_state(const struct host *host)
{
    const char *own = getenv("COVE_HOME"), *states = absolute("XDG_STATE_HOME");

    if (own && *own)
        return text_copy(own);
    if (host->root)
        return text_copy("/var/lib/cove");
    if (states)
        return text_format("%s/cove", states);
    return text_format("%s/.local/state/cove", strcmp(host->home, "/") == 0 ? "" : host->home);
}

static int read_directories(struct host *host, struct error *err)
{
    autofree char *state = choose_state(host);

    if (*state != '/')
        return error_set(err, ERROR_INVALID, "COVE_HOME is '%.200s': it must be an absolute path", state);
    if (!(host->state = private_dir_find(state, err)))
        return error_while(err, "state directory");
    return 0;
}

int host_read(struct host *host, struct error *err)
{
    *host = (struct host){ .uid = geteuid(), .gid = getegid(), .environ = environ };
    if (check_proc(err) < 0 || read_ability(host, err) < 0)
        return -1;
    read_user(host);
    if (read_cwd(host, err) < 0 || read_directories(host, err) < 0) {
        host_free(host);
        return -1;
    }
    return 0;
}

void host_free(struct host *host)
{
    free(host->name);
    free(host->home);
    free(host->shell);
    free(host->cwd);
    free(host->state);
    *host = (struct host){ 0 };
}

int host_make_directory(const struct host *host, struct error *err)
{
    return private_dir_make(host->state, err) < 0 ? error_while(err, "state directory") : 0;
}
