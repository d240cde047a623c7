#pragma once

#include "doctor/doctor.h"

/* For probes: what was seen, and, where the cause is known, what to do about exactly that. */
void found(struct finding *finding, enum diagnosis diagnosis, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void found_fix(struct finding *finding, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same for an error. */
void found_error(struct finding *finding, enum diagnosis diagnosis, const struct error *err);
