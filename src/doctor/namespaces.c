/* Namespaces and ids: what a sandbox is made of. */

#include "base/array.h"
#include "base/own.h"
#include "box/idmap.h"
#include "box/mounts.h"
#include "box/network.h"
#include "box/private_dir.h"
#include "doctor/probes.h"
#include "doctor/trial.h"
#include "spec/spec.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

/* True if the file of /proc/sys says exactly this. */
static bool knob_is(const char *path, const char *value)
{
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    char content[32];
    ssize_t got = fd < 0 ? -1 : read(fd, content, sizeof content - 1);

    if (got <= 0)
        return false;
    content[got] = '\0';
    content[strcspn(content, "\n")] = '\0';
    return strcmp(content, value) == 0;
}

static int nothing(const void *subject, struct error *err)
{
    (void)subject, (void)err;
    return 0;
}

static int try_namespaces(const struct patient *patient, uint64_t namespaces,
                          int (*act)(const void *, struct error *), struct error *err)
{
    struct trial trial = { .namespaces = CLONE_NEWUSER | namespaces, .ids = &patient->ids, .act = act };

    return trial_run(&trial, err);
}

/* Switches of the host that keep users from making user namespaces. */
static const struct {
    const char *file, *off, *name, *fix;
} switches[] = {
    { "/proc/sys/user/max_user_namespaces", "0", "user.max_user_namespaces is 0",
      "sysctl -w user.max_user_namespaces=15000, and the same line in /etc/sysctl.d/cove.conf" },
    { "/proc/sys/kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone is 0",
      "sysctl -w kernel.unprivileged_userns_clone=1, and the same line in /etc/sysctl.d/cove.conf" },
};

void probe_users(const struct patient *patient, struct finding *finding)
{
    struct error err = { 0 };

    if (try_namespaces(patient, 0, nothing, &err) == 0) {
        found(finding, DOCTOR_OK, "one was made, and ids mapped in it");
        return;
    }
    found_error(finding, DOCTOR_MISSING, &err);
    if (getenv("COVE_SANDBOX")) {
        found_fix(finding, "leave the sandbox: none can be made inside another");
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(switches); i++)
        if (knob_is(switches[i].file, switches[i].off)) {
            found(finding, DOCTOR_MISSING, "%s (%s)", switches[i].name, err.text);
            found_fix(finding, "%s", switches[i].fix);
            return;
        }
}

/* Needs nothing but the right to mount, which Ubuntu's restriction takes away. */
static int use_rights(const void *subject, struct error *err)
{
    (void)subject;
    return mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0 ? error_sys(err, "mount in a user namespace")
                                                               : 0;
}

void probe_apparmor(const struct patient *patient, struct finding *finding)
{
    static const char knob[] = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";
    struct error err = { 0 };

    if (!knob_is(knob, "1"))
        found(finding, DOCTOR_OK, "user namespaces are not restricted");
    else if (try_namespaces(patient, CLONE_NEWNS, use_rights, &err) == 0)
        found(finding, DOCTOR_OK, "user namespaces are restricted, but not for this program");
    else
        found(finding, DOCTOR_MISSING, "kernel.apparmor_restrict_unprivileged_userns is 1 (%s)", err.text);
}

static int make_network(const void *subject, struct error *err)
{
    (void)subject;
    struct network network;

    network_make(&network);
    network_close(&network);
    if (network.error.kind == ERROR_NONE)
        return 0;
    *err = network.error;
    return -1;
}

/* The network is made as network.c makes it; the others come with the clone. */
static const struct {
    uint64_t flag;
    const char *name, *knob;
} kinds[] = {
    { CLONE_NEWNS, "mount", "mnt" },   { CLONE_NEWPID, "pid", "pid" }, { CLONE_NEWNET, "network", "net" },
    { CLONE_NEWIPC, "ipc", "ipc" },    { CLONE_NEWUTS, "uts", "uts" }, { CLONE_NEWCGROUP, "cgroup", "cgroup" },
    { CLONE_NEWTIME, "time", "time" },
};

void probe_namespaces(const struct patient *patient, struct finding *finding)
{
    autotext struct text made = TEXT_NONE;

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        bool network = kinds[i].flag == CLONE_NEWNET;
        autofree char *knob = text_format("/proc/sys/user/max_%s_namespaces", kinds[i].knob);
        struct error err = { 0 };

        if (!(kinds[i].flag & plan_own_namespaces))
            continue;
        if (try_namespaces(patient, network ? 0 : kinds[i].flag, network ? make_network : nothing, &err) == 0) {
            text_addf(&made, "%s%s", made.len ? ", " : "", kinds[i].name);
            continue;
        }
        found(finding, DOCTOR_MISSING, "no %s namespace: %s", kinds[i].name, err.text);
        if (knob_is(knob, "0"))
            found_fix(finding, "sysctl -w user.max_%s_namespaces=15000", kinds[i].knob);
        return;
    }
    found(finding, DOCTOR_OK, "%s", text_string(&made));
}

static int mount_proc(const void *subject, struct error *err)
{
    (void)subject;
    if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
        return error_sys(err, "mount a /proc of its own");
    return 0;
}

void probe_proc(const struct patient *patient, struct finding *finding)
{
    autostrings struct strings covered = STRINGS_NONE;
    struct error err = { 0 };

    if (try_namespaces(patient, CLONE_NEWNS | CLONE_NEWPID, mount_proc, &err) == 0) {
        found(finding, DOCTOR_OK, "a sandbox can have its own");
        return;
    }
    found_error(finding, DOCTOR_MISSING, &err);
    mounts_below("/proc", &covered);
    if (err.sys_errno == EPERM && covered.len)
        found(finding, DOCTOR_MISSING,
              "parts of /proc are covered here (%s%s), and the kernel shows nobody a fresh one then",
              covered.items[0], covered.len > 1 ? " and more" : "");
}

static int nothing_mapped(void *argument)
{
    (void)argument;
    return 0;
}

/* By the ids that --image DIR --root would have. */
void probe_subordinate(const struct patient *patient, struct finding *finding)
{
    static char root[] = "root", image[] = "/image";
    struct spec spec = { .user = root, .image = image, .root = true };
    struct error err = { 0 };
    struct ids ids;

    if (patient->host.root) {
        found(finding, DOCTOR_OK, "not needed: root has all");
        return;
    }
    int chosen = ids_choose(&spec, &patient->host, &ids, &err);

    if (chosen == 0 && !private_dir_initial_namespace())
        found(finding, DOCTOR_ABSENT, "nobody can give any out inside another user namespace");
    else if (chosen == 0 && !ids.helpers)
        found(finding, DOCTOR_ABSENT,
              "no /usr/bin/newuidmap and newgidmap, or no range for %s in /etc/subuid and /etc/subgid",
              patient->host.name);
    else if (chosen < 0 || idmap_run(&ids, nothing_mapped, NULL, &err) < 0)
        found_error(finding, DOCTOR_ABSENT, &err);
    else
        found(finding, DOCTOR_OK, "%u from %u on", ids.uids[1].count, ids.uids[1].outside);
}
