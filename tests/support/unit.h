#pragma once

/* cmocka with the includes it wants before it, in the order it wants them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

/* Fails with both texts in the message, which assert_non_null(strstr()) would not show. */
#define assert_contains(text, part)                                                                            \
    do {                                                                                                       \
        const char *unit_text = (text), *unit_part = (part);                                                   \
        if (!strstr(unit_text, unit_part))                                                                     \
            fail_msg("\"%s\" does not contain \"%s\"", unit_text, unit_part);                                  \
    } while (0)
