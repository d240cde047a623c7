#include "init/bpf_run.h"

#include <string.h>

static int load(const struct seccomp_data *data, uint32_t offset, uint32_t *out)
{
    if (offset % 4 != 0 || offset > sizeof *data - sizeof *out)
        return -1;
    memcpy(out, (const char *)data + offset, sizeof *out);
    return 0;
}

/* The distance of a conditional jump. */
static size_t jump(const struct sock_filter *at, uint32_t a)
{
    switch (BPF_OP(at->code)) {
    case BPF_JEQ:
        return a == at->k ? at->jt : at->jf;
    case BPF_JGE:
        return a >= at->k ? at->jt : at->jf;
    default:
        return a > at->k ? at->jt : at->jf;
    }
}

uint32_t bpf_run(const struct sock_filter *code, size_t len, const struct seccomp_data *data)
{
    uint32_t a = 0;

    for (size_t pc = 0; pc < len; pc++) {
        const struct sock_filter *at = &code[pc];

        switch (at->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            if (load(data, at->k, &a) < 0)
                return SECCOMP_RET_KILL_PROCESS;
            break;
        case BPF_ALU | BPF_AND | BPF_K:
            a &= at->k;
            break;
        case BPF_JMP | BPF_JA:
            pc += at->k;
            break;
        case BPF_JMP | BPF_JEQ | BPF_K:
        case BPF_JMP | BPF_JGE | BPF_K:
        case BPF_JMP | BPF_JGT | BPF_K:
            pc += jump(at, a);
            break;
        case BPF_RET | BPF_K:
            return at->k;
        default:
            return SECCOMP_RET_KILL_PROCESS;
        }
    }
    return SECCOMP_RET_KILL_PROCESS;
}
