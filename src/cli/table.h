#pragma once

#include "base/array.h"

struct text;

/* A table for people.  Cells are added row by row; they are inert when it is written. */
struct table {
    size_t columns;
    struct strings cells;
    size_t width; /* of the terminal, 0: any; cells of the last column are cut for it, but not to nothing */
};

#define autotable __attribute__((cleanup(table_free)))

void table_free(struct table *table);
void table_add(struct table *table, const char *cell);

/* Two blanks between columns, none at the end of a line. */
void table_write(const struct table *table, struct text *out);
