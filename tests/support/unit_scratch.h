#pragma once

#include <sys/types.h>

/* A directory that lives as long as one test: use unit_scratch_setup and unit_scratch_teardown
 * with cmocka_unit_test_setup_teardown(); *state is a struct unit_scratch. */
struct unit_scratch {
    char *path; /* absolute, links resolved */
    int dir;
};

int unit_scratch_setup(void **state);
int unit_scratch_teardown(void **state);

/* The path of `name` below it; valid until the fourth call after this one. */
const char *unit_scratch_path(const struct unit_scratch *scratch, const char *name);

/* Writes a file, mode 0600, and gives its path, as above. */
const char *unit_scratch_file(const struct unit_scratch *scratch, const char *name, const char *content);
void unit_scratch_dir(const struct unit_scratch *scratch, const char *name, mode_t mode);
