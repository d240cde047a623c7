#include "cli/table.h"

#include "base/text.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { GAP = 2, LAST_LEAST = 16 };

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

/* How wide the last column may be. */
static size_t last_width(const struct table *table, const size_t *widths)
{
    size_t before = 0;

    for (size_t i = 0; i + 1 < table->columns; i++)
        before += widths[i] + GAP;
    if (!table->width)
        return SIZE_MAX;
    return table->width > before + LAST_LEAST ? table->width - before : LAST_LEAST;
}

static void add_last(const char *cell, size_t most, struct text *out)
{
    static const char cut[] = "...";
    size_t left = most - strlen(cut);

    if (width(cell) <= most) {
        text_add(out, cell);
        return;
    }
    for (const char *at = cell; *at; at++) {
        left -= (*at & 0xc0) != 0x80;
        if (left == SIZE_MAX)
            break;
        text_add_bytes(out, at, 1);
    }
    text_add(out, cut);
}

void table_write(const struct table *table, struct text *out)
{
    size_t *widths = memory_zero((table->columns + 1) * sizeof *widths);

    for (size_t i = 0; i < table->columns; i++)
        widths[i] = column_width(table, i);

    size_t most = last_width(table, widths);

    for (size_t i = 0; table->columns && i < table->cells.len; i++) {
        size_t column = i % table->columns;
        const char *cell = table->cells.items[i];

        if (column + 1 == table->columns) {
            add_last(cell, most, out);
            text_add(out, "\n");
        } else {
            text_addf(out, "%s%*s", cell, (int)(widths[column] - width(cell) + GAP), "");
        }
    }
    free(widths);
}
