#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>

/* What the kernel would make of a call: the SECCOMP_RET_ value of a filter.  Knows the
 * instructions that our generator uses; a program with any other kills, like a bad filter should. */
uint32_t bpf_run(const struct sock_filter *code, size_t len, const struct seccomp_data *data);
