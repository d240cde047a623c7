/* Whether sandboxes can live where the state directory is. */

#include "base/own.h"
#include "box/idmap.h"
#include "doctor/probes.h"
#include "doctor/trial.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

void probe_state(const struct patient *patient, struct finding *finding)
{
    if (patient->place_error.kind != ERROR_NONE)
        found_error(finding, DOCTOR_MISSING, &patient->place_error);
    else
        found(finding, DOCTOR_OK, "%s, on %s", patient->host.state, patient->file_system);
}

/* As execute.c mounts them: root with the host's rights, an ordinary user with those of the user namespace. */
static int mount_overlay(const struct patient *patient, const char *lower, const char *upper,
                         unsigned long flags, struct error *err)
{
    autofree char *options =
        text_format("%slowerdir=%s%s%s", patient->host.root ? "" : "userxattr,", lower, upper,
                    *upper && patient->host.root ? ",redirect_dir=nofollow,index=off,metacopy=off" : "");

    return mount("overlay", "merged", "overlay", MS_NOSUID | MS_NODEV | flags, options) < 0
               ? error_sys(err, "mount an overlay%s", *upper ? " with an upper directory" : "")
               : 0;
}

/* By its path: a handle from before would be of another mount namespace, in which nothing can be mounted. */
static int enter_scratch(const struct patient *patient, struct error *err)
{
    if (patient->host.root && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return error_sys(err, "make mounts private");
    return chdir(patient->scratch_path) < 0 ? error_sys(err, "enter a directory") : 0;
}

/* Layers can be used once: a volatile overlay refuses those of another. */
static int mount_writable(const struct patient *patient, const char *layers, struct error *err)
{
    if (enter_scratch(patient, err) < 0)
        return -1;
    return mount_overlay(patient, "lower", layers, 0, err);
}

static int try_overlays(const void *subject, struct error *err)
{
    const struct patient *patient = subject;

    if (mount_writable(patient, ",upperdir=u0,workdir=w0,volatile", err) < 0)
        return -1;
    return mount_overlay(patient, "lower:empty", "", MS_RDONLY, err);
}

/* What a command does every day. */
static int try_changes(const void *subject, struct error *err)
{
    autoclose int file = -1;

    if (mount_writable(subject, ",upperdir=u1,workdir=w1,volatile", err) < 0)
        return -1;
    if ((file = open("merged/file", O_WRONLY | O_APPEND | O_CLOEXEC)) < 0 || write(file, "above\n", 6) != 6)
        return error_sys(err, "change a file of the tree below");
    if (unlink("merged/file") < 0)
        return error_sys(err, "remove a file of the tree below");
    if (rmdir("merged/directory") < 0 || mkdir("merged/directory", 0700) < 0)
        return error_sys(err, "remove a directory of the tree below and make it again");
    return 0;
}

static int try_in_mounts(const struct patient *patient, int (*act)(const void *, struct error *),
                         struct error *err)
{
    struct trial trial = {
        .namespaces = CLONE_NEWNS | (patient->host.root ? 0 : CLONE_NEWUSER),
        .ids = &patient->ids,
        .act = act,
        .subject = patient,
    };

    return trial_run(&trial, err);
}

void probe_overlay(const struct patient *patient, struct finding *finding)
{
    struct error err = { 0 };

    if (try_in_mounts(patient, try_overlays, &err) == 0) {
        found(finding, DOCTOR_OK, "mounted, with its layers on %s", patient->file_system);
        return;
    }
    found(finding, DOCTOR_MISSING, "%s (on %s)", err.text, patient->file_system);
    if (err.sys_errno == ENODEV)
        found_fix(finding, "modprobe overlay, or use a kernel with CONFIG_OVERLAY_FS");
    if (err.sys_errno == EPERM || err.sys_errno == EACCES)
        found_fix(
            finding,
            "in a container: --security-opt seccomp=unconfined --security-opt apparmor=unconfined; else use "
            "Linux 6.1 or newer, which let ordinary users mount overlays");
}

void probe_overlay_changes(const struct patient *patient, struct finding *finding)
{
    struct error err = { 0 };

    if (try_in_mounts(patient, try_changes, &err) < 0)
        found(finding, DOCTOR_FALLBACK, "%s (on %s)", err.text, patient->file_system);
    else
        found(finding, DOCTOR_OK, "files and directories can be changed, removed and made again");
}

/* A handle on a user namespace that has the ids and nobody in it. */
static int open_ids(const struct ids *ids, struct error *err)
{
    autoclose int pidfd = -1;
    pid_t pid = sys_clone(CLONE_NEWUSER, -1, &pidfd);

    if (pid < 0)
        return error_sys(err, "make a user namespace");
    if (pid == 0)
        for (;;)
            pause();

    autofree char *path = text_format("/proc/%d/ns/user", pid);
    int fd = idmap_write(ids, pid, err);

    if (fd == 0 && (fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
        error_sys(err, "open %s", path);
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    return fd;
}

void probe_idmapped(const struct patient *patient, struct finding *finding)
{
    autoclose int users = -1, copy = -1;
    struct error err = { 0 };

    if (!patient->host.root) {
        found(finding, DOCTOR_OK, "not needed: only root's sandboxes have them");
        return;
    }
    users = open_ids(&patient->ids, &err);
    copy = users < 0 ? -1 : sys_open_tree(patient->scratch, "lower", 0);
    if (users >= 0 && (copy < 0 || sys_mount_attr(copy, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, 0, users) < 0))
        error_sys(&err, "map the ids of a directory on %s", patient->file_system);
    if (err.kind != ERROR_NONE)
        found_error(finding, DOCTOR_MISSING, &err);
    else
        found(finding, DOCTOR_OK, "made on %s", patient->file_system);
}

void probe_reflink(const struct patient *patient, struct finding *finding)
{
    autoclose int from = openat(patient->scratch, "lower/file", O_RDONLY | O_CLOEXEC);
    autoclose int to = openat(patient->scratch, "clone", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    if (from >= 0 && to >= 0 && ioctl(to, FICLONE, from) == 0)
        found(finding, DOCTOR_OK, "%s shares what is the same", patient->file_system);
    else
        found(finding, DOCTOR_FALLBACK, "%s does not share blocks between files", patient->file_system);
}
