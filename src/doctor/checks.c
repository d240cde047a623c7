#include "base/array.h"
#include "doctor/probes.h"

#include <string.h>

/* A sandbox as `cove run` makes it: whatever no other check has thought of shows here. */
static void probe_sandbox(const struct patient *patient, struct finding *finding)
{
    struct error err = { 0 };

    if (patient->start(patient, &err) < 0)
        found_error(finding, DOCTOR_MISSING, &err);
    else
        found(finding, DOCTOR_OK, "one was started, and `true` ran in it");
}

/* In the order in which one thing needs the other.  Names are part of what --json promises.  A row that is
 * added has a host in tests/system/test_doctor.py where its thing is not there. */
const struct check checks[] = {
    { .name = "host",
      .probe = probe_host,
      .without = "nothing works: this is what every command reads first",
      .fix = "what was found says it; a state directory elsewhere is named by COVE_HOME" },
    { .name = "kernel",
      .probe = probe_kernel,
      .without = "it may work, but nobody has tried it: the oldest kernel that Cove is tested with is 6.1",
      .fix = "boot Linux 6.1 or newer" },
    { .name = "place", .probe = probe_place },
    { .name = "user-namespaces",
      .probe = probe_users,
      .without = "there is no sandbox without one",
      .fix = "let users make user namespaces: sysctl -w user.max_user_namespaces=15000; in a "
             "container: --security-opt seccomp=unconfined",
      .after = { "host" } },
    { .name = "apparmor",
      .probe = probe_apparmor,
      .without = "user namespaces can be made, but nothing can be mounted in them",
      .fix = "install Cove's Debian package, whose profile lets exactly /usr/bin/cove through, or: cp "
             "/usr/share/cove/apparmor/cove /etc/apparmor.d/cove && apparmor_parser -r "
             "/etc/apparmor.d/cove",
      .after = { "host", "user-namespaces" } },
    { .name = "namespaces",
      .probe = probe_namespaces,
      .without = "a sandbox has all of them or is not started",
      .fix = "use a kernel that has them (Debian's and Ubuntu's do); in a container: --security-opt "
             "seccomp=unconfined",
      .after = { "host", "user-namespaces" } },
    { .name = "proc",
      .probe = probe_proc,
      .without = "processes of the host would be seen inside, so no sandbox is started",
      .fix = "run this on the host itself; in a container: --security-opt systempaths=unconfined "
             "--security-opt apparmor=unconfined (Docker, Podman), procMount: Unmasked (Kubernetes)",
      .after = { "host", "user-namespaces" } },
    { .name = "system-calls",
      .probe = probe_calls,
      .without = "the start of a sandbox needs every one of them",
      .fix = "use Linux 6.1 or newer; in a container whose seccomp profile refuses them: "
             "--security-opt seccomp=unconfined",
      .after = { "host", "user-namespaces" } },
    { .name = "memfd",
      .probe = probe_memfd,
      .without = "the program of PID 1 cannot be run",
      .fix = "sysctl -w vm.memfd_noexec=1" },
    { .name = "state-directory",
      .probe = probe_state,
      .without = "a sandbox has nowhere to be",
      .fix = "set COVE_HOME to a directory of yours on a local file system, mode 700",
      .after = { "host" } },
    { .name = "overlay",
      .probe = probe_overlay,
      .without = "there is no copy on write, and no sandbox without it",
      .fix = "set COVE_HOME to a directory on ext4, xfs, btrfs or tmpfs; in a container: to a volume "
             "or tmpfs",
      .after = { "state-directory", "user-namespaces" } },
    { .name = "overlay-changes",
      .probe = probe_overlay_changes,
      .without = "inside, a directory that was there before cannot be removed and made again, or a file be"
                 " removed",
      .fix = "set COVE_HOME to a directory on a file system with extended attributes of users: ext4, "
             "xfs, btrfs, or tmpfs of Linux 6.6 and newer",
      .after = { "overlay", "user-namespaces" } },
    { .name = "id-mapped-mounts",
      .probe = probe_idmapped,
      .without = "root's sandboxes have ids of their own, and cannot see files without this",
      .fix = "set COVE_HOME to a directory on ext4, xfs or btrfs (tmpfs since Linux 6.3; not "
             "overlayfs)",
      .after = { "state-directory", "user-namespaces" } },
    { .name = "reflink",
      .probe = probe_reflink,
      .without = "--workspace copy and cove apply --verify copy every byte, and need the room for it",
      .fix = "set COVE_HOME to a directory on btrfs, or on xfs with reflink, together with your "
             "projects",
      .after = { "state-directory" } },
    { .name = "seccomp",
      .probe = probe_seccomp,
      .without = "a command could make every system call, so none is started",
      .fix = "use a kernel with CONFIG_SECCOMP_FILTER, and nothing around Cove that forbids filters" },
    { .name = "seccomp-listener",
      .probe = probe_listener,
      .without = "cove run --explain refuses; without it a run is not affected",
      .fix = "run Cove outside of the sandbox or container whose own listener is in the way",
      .after = { "seccomp" } },
    { .name = "landlock",
      .probe = probe_landlock,
      .without = "the second wall around files is missing, or lower; the first, mounts, holds alone",
      .fix = "boot with landlock among the names of lsm= (cat /sys/kernel/security/lsm shows them), on"
             " Linux 6.12 or newer" },
    { .name = "cgroup",
      .probe = probe_cgroup,
      .without = "limits on memory and processors cannot be hard: no group can be made for a sandbox",
      .fix = "log in by a systemd session with cgroup v2 and delegated controllers (systemctl edit "
             "user@.service: Delegate=cpu memory pids io)",
      .after = { "host" } },
    { .name = "subordinate-ids",
      .probe = probe_subordinate,
      .without = "root in an image of yours (--image DIR --root) has one id only: apt and others that "
                 "become another user fail",
      .fix = "apt install uidmap && usermod --add-subuids 100000-165535 --add-subgids 100000-165535 "
             "$USER",
      .after = { "host" } },
    { .name = "nftables",
      .probe = probe_nftables,
      .without = "nothing yet: the network gateway will need it",
      .fix = "modprobe nf_tables",
      .after = { "host", "user-namespaces" } },
    { .name = "kvm",
      .probe = probe_kvm,
      .without = "nothing yet: sandboxes with a kernel of their own will need it",
      .fix = "switch virtualization on in the firmware, or nested virtualization in the hypervisor; "
             "then modprobe kvm" },
    { .name = "criu",
      .probe = probe_criu,
      .without = "nothing yet: snapshots of running processes will need it",
      .fix = "install criu" },
    { .name = "sandbox",
      .probe = probe_sandbox,
      .without = "cove run refuses, with these words",
      .fix = "mend what the other checks name; if they name nothing, report these words as a bug",
      .after = { "host", "state-directory" } },
};
const size_t checks_len = ARRAY_LEN(checks);

/* The first check that this one needs and that did not succeed; NULL: it can be tried. */
static const char *hindrance(const struct check *check, const struct finding *findings)
{
    for (size_t i = 0; i < ARRAY_LEN(check->after); i++)
        for (size_t k = 0; check->after[i] && &checks[k] != check; k++)
            if (strcmp(checks[k].name, check->after[i]) == 0 && findings[k].diagnosis >= DOCTOR_MISSING)
                return checks[k].name;
    return NULL;
}

bool doctor_examine(const struct patient *patient, struct finding *findings)
{
    bool works = true;

    for (size_t i = 0; i < checks_len; i++) {
        const char *before = hindrance(&checks[i], findings);

        if (before)
            found(&findings[i], DOCTOR_UNKNOWN, "not tried, for want of: %s", before);
        else
            checks[i].probe(patient, &findings[i]);
        works = works && findings[i].diagnosis != DOCTOR_MISSING;
    }
    return works;
}

void findings_clear(struct finding *findings)
{
    for (size_t i = 0; i < checks_len; i++) {
        text_free(&findings[i].found);
        text_free(&findings[i].fix);
    }
}
