#pragma once

#include <stdbool.h>
#include <stddef.h>

/* File name patterns: `*` any run, `?` any one byte, `[a-z]` `[!a-z]` a set, `\` takes the next
 * byte as it is.  Compared by bytes: "A" is not "a", and no locale is asked. */

/* One name, in which `/` is a byte like any other. */
bool glob_match(const char *pattern, const char *name);
bool glob_match_part(const char *pattern, size_t pattern_len, const char *name, size_t name_len);

enum glob_place {
    GLOB_NO,    /* neither the path nor anything below it can match */
    GLOB_ABOVE, /* does not match itself, but something below it could */
    GLOB_YES,   /* matches */
    GLOB_BELOW, /* lies below something that matches */
};

/* Compares component by component, so that `*` does not cross a slash.  A component `**` stands
 * for any number of components, also none.  Leading and doubled slashes do not count. */
enum glob_place glob_compare(const char *pattern, const char *path);
