#include "cli/table.h"

#include "base/text.h"

#include <stdlib.h>

enum { GAP = 2 };

void table_free(struct table *table)
{
    strings_free(&table->cells);
}

void table_add(struct table *table, const char *cell)
{
    struct text inert = TEXT_NONE;

    text_add_inert(&inert, cell);
    strings_take(&table->cells, text_steal(&inert));
}

/* Characters, not bytes: those of UTF-8 that begin one. */
static size_t width(const char *cell)
{
    size_t count = 0;

    for (; *cell; cell++)
        count += (*cell & 0xc0) != 0x80;
    return count;
}

static size_t column_width(const struct table *table, size_t column)
{
    size_t widest = 0;

    for (size_t i = column; i < table->cells.len; i += table->columns) {
        size_t own = width(table->cells.items[i]);

        widest = own > widest ? own : widest;
    }
    return widest;
}

void table_write(const struct table *table, struct text *out)
{
    size_t *widths = memory_zero((table->columns + 1) * sizeof *widths);

    for (size_t i = 0; i < table->columns; i++)
        widths[i] = column_width(table, i);
    for (size_t i = 0; table->columns && i < table->cells.len; i++) {
        size_t column = i % table->columns;
        const char *cell = table->cells.items[i];

        text_add(out, cell);
        if (column + 1 == table->columns)
            text_add(out, "\n");
        else
            text_addf(out, "%*s", (int)(widths[column] - width(cell) + GAP), "");
    }
    free(widths);
}
