#pragma once

/* How the caller may react.  The CLI maps a kind to an exit code, the API will map it to an
 * HTTP status; nobody ever parses the text. */
enum error_kind {
    ERROR_NONE,
    ERROR_INVALID,     /* the request itself is wrong */
    ERROR_MISSING,     /* it names something that does not exist */
    ERROR_REFUSED,     /* our policy says no */
    ERROR_UNSUPPORTED, /* this host lacks something that the request needs */
    ERROR_SYSTEM,      /* the kernel says no: sys_errno tells why */
};

/* A flat value on the caller's stack: filling it cannot fail, nothing has to be freed, and a
 * child may write it whole to its parent between clone and exec. */
struct error {
    enum error_kind kind;
    int sys_errno;
    char text[504];
};

#define ERROR_PRINTF(at, from) __attribute__((format(printf, at, from)))

/* All return -1, so that a failing branch reads: return error_sys(err, ...);
 *   error_set    what is wrong, of a given kind
 *   error_sys    what was tried; ": " and the description of errno are added
 *   error_while  puts "doing what: " before the text that is already there
 *   error_hint   adds a sentence that says what to do about it */
int error_set(struct error *err, enum error_kind kind, const char *format, ...) ERROR_PRINTF(3, 4);
int error_sys(struct error *err, const char *format, ...) ERROR_PRINTF(2, 3);
int error_while(struct error *err, const char *format, ...) ERROR_PRINTF(2, 3);
int error_hint(struct error *err, const char *format, ...) ERROR_PRINTF(2, 3);
