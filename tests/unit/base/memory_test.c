/* Memory that is given back to the system. */

#include "base/memory.h"
#include "base/own.h"
#include "tests/support/unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECES = 400, PIECE = 10000, DEEP = 30, KIB = 1024 };

/* In KiB, that this process has for itself; exactly, which statm is not. */
static long resident(void)
{
    static char text[8192];
    autoclose int fd = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);

    memset(text, 0, sizeof text);
    assert_true(read(fd, text, sizeof text - 1) > 0);

    const char *line = strstr(text, "\nAnonymous:");

    assert_non_null(line);
    return strtol(line + strlen("\nAnonymous:"), NULL, 10);
}

static __attribute__((noinline)) void use_stack(void)
{
    volatile char deep[DEEP * KIB];

    for (size_t i = 0; i < sizeof deep; i += KIB)
        deep[i] = 1;
}

/* What was freed lies below what was not: the heap's end cannot simply sink. */
static void freed_memory_is_given_back(void **state)
{
    void *pieces[PIECES], *last;
    long before;

    (void)state;
    for (size_t i = 0; i < PIECES; i++)
        pieces[i] = memset(memory_resize(NULL, PIECE), 1, PIECE);
    last = memory_zero(1);
    for (size_t i = 0; i < PIECES; i++)
        free(pieces[i]);
    before = resident();
    memory_give_back();
    assert_true(before - resident() > PIECES * PIECE / KIB * 9 / 10);
    free(last);
}

static void the_stack_below_is_given_back(void **state)
{
    long before;

    (void)state;
    memory_give_back();
    use_stack();
    before = resident();
    memory_give_back();
    assert_true(before - resident() >= DEEP / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(freed_memory_is_given_back),
        cmocka_unit_test(the_stack_below_is_given_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
