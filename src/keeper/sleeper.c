/* A guard asleep: it waits for days, and needs no copy of the keeper's memory for that.  What it is about lies
 * in its variables, which its owner alone can read.
 *
 * Should: become the guard again when there is something to do; be small, because each sandbox that stays has
 * one.  So it moves into a page that it has anyway, and gives the kernel's stack back: a page or two, and three
 * of tables that are for that stack alone.  Must not: do anything else. */

#include "keeper/guard_fds.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    /* The machine may be short of memory for a while. */
    TRIES = 600,
    PAUSE_MS = 100,
    /* Of ours, and in what we move into. */
    WORDS = 32,
    TEXT = 2048,
    STACK = 1024,
    PAGE = 4096,
    BELOW = 64 * PAGE, /* where the stack may have been used; nothing else is mapped there */
};

static struct {
    _Alignas(16) char stack[STACK];
    char *words[WORDS];
    char text[TEXT];
} home;

static char name[] = GUARD_NAME, *arguments[] = { name, NULL };
static char **variables;
static bool heeds;

/* They end here: who is woken up executes another program. */
static _Noreturn void sleep_and_wake(void)
{
    struct pollfd events[] = { { .fd = heeds ? GUARD_VERDICT : -1, .events = POLLIN },
                               { .fd = GUARD_PIDFD, .events = POLLIN } };

    while (poll(events, 2, -1) < 0 && errno == EINTR)
        continue;
    for (int tries = 0; tries < TRIES; tries++) {
        syscall(SYS_execveat, GUARD_IMAGE, "", arguments, variables, AT_EMPTY_PATH);
        if (errno != ENOMEM && errno != EAGAIN)
            break;
        (void)poll(NULL, 0, PAUSE_MS);
    }
    _exit(1); /* what is left is swept by the next start */
}

/* False: there is no room for them. */
static bool move_words(void)
{
    size_t used = 0, count = 0;

    for (; variables[count]; count++) {
        size_t size = strlen(variables[count]) + 1;

        if (count + 1 >= WORDS || size > sizeof home.text - used)
            return false;
        home.words[count] = memcpy(home.text + used, variables[count], size);
        used += size;
    }
    variables = home.words;
    return true;
}

static uintptr_t old_from, old_to;

static _Noreturn void give_stack_back(void)
{
    (void)munmap((void *)old_from, old_to - old_from);
    sleep_and_wake();
}

/* The name of the program is the last thing in a stack that the kernel has made. */
static _Noreturn void move(void)
{
    const char *last = (const char *)(uintptr_t)getauxval(AT_EXECFN);
    char *top = home.stack + sizeof home.stack;

    old_from = ((uintptr_t)&last & ~(uintptr_t)(PAGE - 1)) - BELOW;
    old_to = last ? ((uintptr_t)last + strlen(last) + PAGE) & ~(uintptr_t)(PAGE - 1) : old_from;
#if defined(__x86_64__)
    __asm__ volatile("mov %0, %%rsp\n\txor %%ebp, %%ebp\n\tcall *%1\n\tud2"
                     :
                     : "r"(top), "r"(give_stack_back)
                     : "memory");
#elif defined(__aarch64__)
    __asm__ volatile("mov sp, %0\n\tblr %1\n\tbrk #0" : : "r"(top), "r"(give_stack_back) : "memory", "x30");
#else
    (void)top;
#endif
    sleep_and_wake();
}

int main(int argc, char **argv, char **given)
{
    (void)argv;
    prctl(PR_SET_NAME, name);
    heeds = argc > 1;
    variables = given;
    if (move_words())
        move();
    sleep_and_wake();
}
