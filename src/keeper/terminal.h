#pragma once

#include <sys/ioctl.h>

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <termios.h>

struct error;

/* The terminal of the user while a sandboxed program draws on it. */
struct terminal {
    int fd; /* borrowed; -1: not in use */
    bool raw;
    struct termios saved;
    int guard_fd;
    pid_t guard;
};

#define TERMINAL_NONE ((struct terminal){ .fd = -1, .guard_fd = -1, .guard = -1 })

/* Keys go through as bytes from here on.  Waits (by the kernel's job control) until we are in the
 * foreground.  A small process stands by that puts the terminal back if this one is killed. */
int terminal_raw(struct terminal *terminal, int fd, struct error *err);

/* Throws away what the terminal is about to answer to a program that is gone: the shell would
 * take it for keys. */
void terminal_discard_answers(const struct terminal *terminal);

/* As it was found.  Safe to call twice, and if it was never raw. */
void terminal_restore(struct terminal *terminal);

/* Around a stop by job control: the shell gets its terminal back meanwhile. */
void terminal_pause(struct terminal *terminal);
void terminal_resume(struct terminal *terminal);

/* 0 x 0 if `fd` is no terminal. */
struct winsize terminal_size(int fd);
void terminal_copy_size(int from, int to);

/* Whether what this terminal shows is UTF-8, so that bytes 0x80 to 0x9f are no controls. */
bool terminal_is_utf8(int fd);
