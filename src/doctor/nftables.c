/* Packet filters of an own network: a sandbox's rules are loaded, in a network that is gone with the child. */

#include "base/own.h"
#include "box/nettable.h"
#include "doctor/probes.h"
#include "doctor/trial.h"

#include <linux/sched.h>
#include <stdio.h>
#include <sys/utsname.h>
#include <unistd.h>

static int load_rules(const void *subject, struct error *err)
{
    autoclose int fd = nettable_load(err);

    (void)subject;
    return fd < 0 ? -1 : 0;
}

/* True if the list of what is part of the kernel names it: "kernel/net/netfilter/nf_tables.ko". */
static bool is_built_in(void)
{
    autofree char *line = NULL, *path = NULL;
    struct utsname name;
    size_t room = 0;
    bool found = false;

    (void)uname(&name);
    path = text_format("/lib/modules/%s/modules.builtin", name.release);

    FILE *lines = fopen(path, "re");

    while (lines && !found && getline(&line, &room, lines) > 0)
        found = text_ends(line, "/nf_tables.ko\n");
    if (lines)
        fclose(lines);
    return found;
}

/* To ask would load it, and who only wants to know should not give the kernel one more thing to be attacked. */
static bool would_be_loaded(void)
{
    return access("/proc/modules", F_OK) == 0 && access("/sys/module/nf_tables", F_OK) < 0 && !is_built_in();
}

void probe_nftables(const struct patient *patient, struct finding *finding)
{
    struct trial trial = { .namespaces = CLONE_NEWUSER | CLONE_NEWNET,
                           .ids = &patient->ids,
                           .act = load_rules };
    struct error err = { 0 };

    if (would_be_loaded())
        found(finding, DOCTOR_ABSENT, "nf_tables is not loaded");
    else if (trial_run(&trial, &err) < 0)
        found_error(finding, DOCTOR_ABSENT, &err);
    else
        found(finding, DOCTOR_OK, "the rules of a sandbox were loaded in a network of its own");
}
