#pragma once

#include "base/array.h"

struct text;

/* A table for people.  Cells are added row by row; they are inert when it is written. */
struct table {
    size_t columns;
    struct strings cells;
};

#define autotable __attribute__((cleanup(table_free)))

void table_free(struct table *table);
void table_add(struct table *table, const char *cell);

/* Two blanks between columns, none at the end of a line. */
void table_write(const struct table *table, struct text *out);
