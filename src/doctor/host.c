/* Who asks, on which kernel, and inside of what. */

#include "base/array.h"
#include "box/private_dir.h"
#include "doctor/probes.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

void probe_host(const struct patient *patient, struct finding *finding)
{
    const struct host *host = &patient->host;

    if (patient->host_error.kind != ERROR_NONE)
        found_error(finding, DOCTOR_MISSING, &patient->host_error);
    else if (host->root)
        found(finding, DOCTOR_OK, "root, whose sandboxes get ids of their own");
    else
        found(finding, DOCTOR_OK, "an ordinary user, %s (uid %u)%s", host->name, (unsigned)host->uid,
              private_dir_initial_namespace() ? "" : ", in a user namespace that is not the machine's");
}

void probe_kernel(const struct patient *patient, struct finding *finding)
{
    enum { MAJOR = 6, MINOR = 1 };
    struct utsname name = { 0 };

    (void)patient;
    (void)uname(&name);

    char *rest;
    long major = strtol(name.release, &rest, 10), minor = *rest == '.' ? strtol(rest + 1, NULL, 10) : 0;
    bool old = major < MAJOR || (major == MAJOR && minor < MINOR);

    found(finding, old ? DOCTOR_FALLBACK : DOCTOR_OK, "%s %s %s", name.sysname, name.release, name.machine);
}

static bool is_wsl(void)
{
    struct utsname name;

    return uname(&name) == 0 && strcasestr(name.release, "microsoft");
}

/* The files that engines leave for this question; $container is systemd's convention. */
static const char *container(void)
{
    static const struct {
        const char *path, *name;
    } marks[] = { { "/run/.containerenv", "podman" },
                  { "/.dockerenv", "docker" },
                  { "/var/run/secrets/kubernetes.io", "kubernetes" },
                  { "/run/host/container-manager", "systemd" } };
    const char *said = getenv("container");

    for (size_t i = 0; i < ARRAY_LEN(marks); i++)
        if (access(marks[i].path, F_OK) == 0)
            return marks[i].name;
    return said && *said ? said : NULL;
}

void probe_place(const struct patient *patient, struct finding *finding)
{
    const char *around = container();

    (void)patient;
    if (getenv("COVE_SANDBOX"))
        found(finding, DOCTOR_OK, "inside a sandbox of Cove, in which none can be made");
    else if (is_wsl())
        found(finding, DOCTOR_OK, "the Windows Subsystem for Linux; keep projects and COVE_HOME out of /mnt");
    else if (around)
        found(finding, DOCTOR_OK, "inside a container (%.40s)", around);
    else
        found(finding, DOCTOR_OK, "no container that shows itself");
}
