#include "doctor/finding.h"

#include "base/array.h"

#include <stdarg.h>
#include <stdio.h>

enum { LINE_MAX_BYTES = 1024 };

static void __attribute__((format(printf, 2, 0))) replace(struct text *text, const char *format, va_list args)
{
    char line[LINE_MAX_BYTES];

    vsnprintf(line, sizeof line, format, args);
    text_clear(text);
    text_add(text, line);
}

void found(struct finding *finding, enum diagnosis diagnosis, const char *format, ...)
{
    va_list args;

    finding->diagnosis = diagnosis;
    va_start(args, format);
    replace(&finding->found, format, args);
    va_end(args);
}

void found_fix(struct finding *finding, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    replace(&finding->fix, format, args);
    va_end(args);
}

void found_error(struct finding *finding, enum diagnosis diagnosis, const struct error *err)
{
    found(finding, diagnosis, "%s", err->text);
}

const char *diagnosis_name(enum diagnosis diagnosis)
{
    static const char *const names[] = {
        [DOCTOR_OK] = "ok",           [DOCTOR_FALLBACK] = "fallback", [DOCTOR_ABSENT] = "absent",
        [DOCTOR_MISSING] = "missing", [DOCTOR_UNKNOWN] = "unknown",
    };

    return names[diagnosis];
}
