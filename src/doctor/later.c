/* What nothing uses yet. */

#include "base/array.h"
#include "base/own.h"
#include "doctor/probes.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* The file may be there before the module, and would load it: what is really there is listed. */
static bool is_registered(const char *device)
{
    autofree char *line = NULL;
    FILE *lines = fopen("/proc/misc", "re");
    bool found = !lines;
    size_t room = 0;

    while (!found && getline(&line, &room, lines) > 0) {
        const char *name = strrchr(line, ' ');

        line[strcspn(line, "\n")] = '\0';
        found = name && strcmp(name + 1, device) == 0;
    }
    if (lines)
        fclose(lines);
    return found;
}

void probe_kvm(const struct patient *patient, struct finding *finding)
{
    autoclose int fd = -1;
    struct error err = { 0 };

    (void)patient;
    if (!is_registered("kvm")) {
        found(finding, DOCTOR_ABSENT, "there is none, or its module is not loaded");
        return;
    }
    fd = open("/dev/kvm", O_RDWR | O_CLOEXEC);
    if (fd >= 0 && ioctl(fd, KVM_GET_API_VERSION, 0) == KVM_API_VERSION) {
        found(finding, DOCTOR_OK, "/dev/kvm answers");
        return;
    }
    error_sys(&err, "%s /dev/kvm", fd < 0 ? "open" : "use");
    found_error(finding, DOCTOR_ABSENT, &err);
    if (err.sys_errno == EACCES)
        found_fix(finding, "usermod -aG kvm $USER, and log in again");
}

/* Only its presence: it needs rights that a probe must not ask for. */
void probe_criu(const struct patient *patient, struct finding *finding)
{
    static const char *const places[] = { "/usr/sbin/criu", "/usr/bin/criu", "/usr/local/sbin/criu" };

    (void)patient;
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        if (access(places[i], X_OK) == 0) {
            found(finding, DOCTOR_OK, "%s", places[i]);
            return;
        }
    found(finding, DOCTOR_ABSENT, "not installed");
}
