#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* strerror() may allocate and take locks; the table of descriptions does neither, so it also
 * works in a child between clone and exec. */
static const char *describe(int number)
{
#ifdef __GLIBC__
    const char *text = strerrordesc_np(number);
#else
    const char *text = strerror(number);
#endif

    return text ? text : "unknown error";
}

int error_set(struct error *err, enum error_kind kind, const char *format, ...)
{
    va_list args;

    err->kind = kind;
    err->sys_errno = 0;
    va_start(args, format);
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    return -1;
}

int error_sys(struct error *err, const char *format, ...)
{
    int number = errno;
    va_list args;

    err->kind = ERROR_SYSTEM;
    err->sys_errno = number;
    va_start(args, format);
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);

    size_t used = strlen(err->text);
    snprintf(err->text + used, sizeof err->text - used, ": %s", describe(number));
    return -1;
}

int error_while(struct error *err, const char *format, ...)
{
    char inner[sizeof err->text];
    va_list args;

    memcpy(inner, err->text, sizeof inner);
    va_start(args, format);
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);

    size_t used = strlen(err->text);
    snprintf(err->text + used, sizeof err->text - used, ": %s", inner);
    return -1;
}

int error_hint(struct error *err, const char *format, ...)
{
    size_t used = strlen(err->text);
    va_list args;

    used += (size_t)snprintf(err->text + used, sizeof err->text - used, "; ");
    if (used < sizeof err->text) {
        va_start(args, format);
        vsnprintf(err->text + used, sizeof err->text - used, format, args);
        va_end(args);
    }
    return -1;
}
