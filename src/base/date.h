#pragma once

#include <stdbool.h>
#include <time.h>

/* RFC 3339 in UTC, to the millisecond: "2026-01-31T12:00:00.000Z". */
enum { DATE_SIZE = 64 };

/* The empty string for a time that has no such form. */
void date_write(struct timespec time, char out[DATE_SIZE]);

/* Takes exactly what date_write() gives. */
bool date_read(const char *text, struct timespec *out);
