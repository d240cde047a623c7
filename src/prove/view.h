#pragma once

/* What the host sees of a process, read from its own /proc. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct strings;

/* The youngest child of it; 0 if there is none. */
pid_t view_child(pid_t pid);

/* Numbers of its descriptors. */
void view_descriptors(pid_t pid, struct strings *out);

/* What its descriptors, or those of its children, lead to: "socket:[123]", "/dev/kvm"; not those in `except`.
 */
void view_links(pid_t pid, const struct strings *except, struct strings *out);
void view_child_links(pid_t pid, struct strings *out);

/* A line of its status, without the name; NULL if there is none. */
char *view_status(pid_t pid, const char *name);

/* The same as a number in base 16 or 10; false if there is none. */
bool view_status_number(pid_t pid, const char *name, int base, uint64_t *out);

/* "user:[4026531837]"; NULL if it cannot be read. */
char *view_namespace(pid_t pid, const char *kind);

/* A file of /proc/PID; NULL if it cannot be read. */
char *view_file(pid_t pid, const char *name);

/* Calls for each child of it. */
void view_children(pid_t pid, void (*each)(void *owner, pid_t child), void *owner);
