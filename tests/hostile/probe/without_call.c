/* without-call NUMBER ERRNO [ARG MASK VALUE] -- COMMAND...
 *
 * Runs COMMAND on a kernel that answers ERRNO to one system call, always or where (ARG & MASK) is
 * VALUE: the host lacks the call, or its administrator forbids it. */

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int first = argc > 3 && strcmp(argv[3], "--") == 0 ? 4 : 7;

    if (argc <= first)
        return 2;

    unsigned number = (unsigned)strtoul(argv[1], NULL, 0), error = (unsigned)strtoul(argv[2], NULL, 0);
    unsigned arg = 0, mask = 0, value = 0;

    if (first == 7) {
        arg = (unsigned)strtoul(argv[3], NULL, 0);
        mask = (unsigned)strtoul(argv[4], NULL, 0);
        value = (unsigned)strtoul(argv[5], NULL, 0);
    }

    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offsetof(struct seccomp_data, args) + arg * 8),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof code / sizeof *code, code };

    /* Root needs no no-new-privileges, and without it setuid helpers still work. */
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0 &&
        (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
         syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)) {
        perror("seccomp");
        return 2;
    }
    execvp(argv[first], argv + first);
    perror(argv[first]);
    return 2;
}
