#include "base/date.h"

#include <stdio.h>
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

/* What scanf lets pass (blanks, signs, the 31st of June) does not come back the same. */
bool date_read(const char *text, struct timespec *out)
{
    struct tm parts = { 0 };
    struct timespec time = { 0 };
    char again[DATE_SIZE];
    int millis;

    if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ", &parts.tm_year, &parts.tm_mon, &parts.tm_mday,
               &parts.tm_hour, &parts.tm_min, &parts.tm_sec, &millis) != 7)
        return false;
    parts.tm_year -= 1900;
    parts.tm_mon--;
    time.tv_sec = timegm(&parts);
    time.tv_nsec = millis * 1000000L;
    date_write(time, again);
    if (strcmp(again, text) != 0)
        return false;
    *out = time;
    return true;
}
