#include "explore/score.h"

#include "base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *skip_digits(const char *at, size_t *count)
{
    size_t len = strspn(at, "0123456789");

    *count += len;
    return at + len;
}

/* Where the number ends, or NULL if there is none. */
static const char *number_end(const char *at)
{
    size_t digits = 0, exponent = 0;

    at += *at == '+' || *at == '-';
    at = skip_digits(at, &digits);
    if (*at == '.')
        at = skip_digits(at + 1, &digits);
    if (!digits)
        return NULL;
    if (*at != 'e' && *at != 'E')
        return at;
    at++;
    at += *at == '+' || *at == '-';
    at = skip_digits(at, &exponent);
    return exponent ? at : NULL;
}

bool score_read(const char *text, double *out)
{
    const char *at = text + strspn(text, " \t\r"), *end = number_end(at);
    double score;

    if (!end || end[strspn(end, " \t\r")])
        return false;
    score = strtod(at, NULL); /* the program keeps the C locale */
    if (!isfinite(score))
        return false;
    *out = score == 0 ? 0 : score; /* there is one zero */
    return true;
}

char *score_write(double score)
{
    char *shorter = text_format("%.15g", score);

    if (strtod(shorter, NULL) == score)
        return shorter;
    free(shorter);
    return text_format("%.17g", score);
}
