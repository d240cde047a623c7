#include "base/date.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void date_write(struct timespec time, char out[DATE_SIZE])
{
    struct tm parts;
    size_t len = 0;

    out[0] = '\0';
    if (gmtime_r(&time.tv_sec, &parts))
        len = strftime(out, DATE_SIZE, "%Y-%m-%dT%H:%M:%S", &parts);
    if (len)
        snprintf(out + len, DATE_SIZE - len, ".%03ldZ", time.tv_nsec / 1000000);
}

/* What strptime lets pass (blanks, single digits, the 31st of June) does not come back the same. */
bool date_read(const char *text, struct timespec *out)
{
    struct tm parts = { 0 };
    struct timespec time = { 0 };
    char again[DATE_SIZE];
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &parts);

    if (!rest || *rest != '.')
        return false;
    time.tv_sec = timegm(&parts);
    time.tv_nsec = (strtol(rest + 1, NULL, 10) % 1000) * 1000000;
    date_write(time, again);
    if (strcmp(again, text) != 0)
        return false;
    *out = time;
    return true;
}
