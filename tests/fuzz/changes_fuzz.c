/* Names, link targets and attributes of overlayfs, all bytes of a hostile program.  A folded name is
 * folded for good; a link that is called inside has no way out by its text. */

#include "base/own.h"
#include "base/text.h"
#include "changes/marks.h"
#include "changes/names.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

static void try_origin(const uint8_t *data, size_t size)
{
    struct origin origin;

    if (mark_parse_origin(data, size, &origin))
        check(origin.len > 0 && origin.len <= ORIGIN_MAX && origin.len < size);
}

static void try_name(const char *name)
{
    autofree char *once = name_fold(name), *twice = name_fold(once);

    check(strcmp(once, twice) == 0);
    check(strlen(once) <= strlen(name));
    check(name_is_odd(name) || !strpbrk(name, "\n\r\t\x1b\x7f"));
}

static void try_link(const char *target)
{
    enum link_place place = link_judge("a/link", target, "/some/tree");

    check(place != LINK_INSIDE || *target != '/');
    check(place != LINK_ABSOLUTE || *target == '/');
    /* One directory up is the workspace, two are not. */
    check(place != LINK_INSIDE || strncmp(target, "../..", 5) != 0 || (target[5] && target[5] != '/'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autofree char *string = calloc(1, size + 1);

    check(string != NULL);
    if (size)
        memcpy(string, data, size);
    try_origin(data, size);
    try_name(string);
    try_link(string);
    return 0;
}
