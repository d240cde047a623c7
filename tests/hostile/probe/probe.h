#pragma once

/* The attacks of the hostile suite, one static program with a name for each of them.  What it
 * prints ("CHK step errno", "SAY key value") is for diagnosis and comparison; whether an attack
 * had an effect is judged on the host. */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Reports one step: `result` below 0 is a failure with errno. */
void chk(const char *step, long result);
void chkf(long result, const char *format, ...) __attribute__((format(printf, 2, 3)));
void say(const char *key, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A system call that libc has no function for, with up to three arguments that matter. */
long call3(long number, long a, long b, long c);

/* Prints a file as it is, each line after `SAY key`. */
void say_file(const char *key, const char *path);

/* "init" or a number: what a process of the sandbox is. */
const char *role_of(int pid);

/* Calls `each` for every process that can be seen. */
void for_each_pid(void (*each)(int pid));

/* No such address in this process: the kernel would answer EFAULT where the filter refuses. */
#define BAD ((void *)~0xfffUL)
#define BAD_NUMBER (~0xfffL)

struct attack {
    const char *name;
    int (*run)(int argc, char **argv);
};

extern const struct attack ns_attacks[], proc_attacks[], fs_attacks[], sys_attacks[], ipc_attacks[],
    fd_attacks[], res_attacks[];
