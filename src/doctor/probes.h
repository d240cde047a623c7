#pragma once

#include "doctor/finding.h"

/* The probes, by the file that they are in. */

void probe_host(const struct patient *patient, struct finding *finding); /* host.c */
void probe_kernel(const struct patient *patient, struct finding *finding);
void probe_place(const struct patient *patient, struct finding *finding);

void probe_users(const struct patient *patient, struct finding *finding); /* namespaces.c */
void probe_apparmor(const struct patient *patient, struct finding *finding);
void probe_namespaces(const struct patient *patient, struct finding *finding);
void probe_proc(const struct patient *patient, struct finding *finding);
void probe_subordinate(const struct patient *patient, struct finding *finding);

void probe_calls(const struct patient *patient, struct finding *finding); /* calls.c */
void probe_memfd(const struct patient *patient, struct finding *finding);

void probe_state(const struct patient *patient, struct finding *finding); /* files.c */
void probe_overlay(const struct patient *patient, struct finding *finding);
void probe_overlay_changes(const struct patient *patient, struct finding *finding);
void probe_idmapped(const struct patient *patient, struct finding *finding);
void probe_reflink(const struct patient *patient, struct finding *finding);

void probe_seccomp(const struct patient *patient, struct finding *finding); /* walls.c */
void probe_listener(const struct patient *patient, struct finding *finding);
void probe_landlock(const struct patient *patient, struct finding *finding);

void probe_cgroup(const struct patient *patient, struct finding *finding);   /* cgroup.c */
void probe_nftables(const struct patient *patient, struct finding *finding); /* nftables.c */
void probe_kvm(const struct patient *patient, struct finding *finding);      /* later.c */
void probe_criu(const struct patient *patient, struct finding *finding);
