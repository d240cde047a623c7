#include "cli/ranked.h"

#include "base/own.h"
#include "base/text.h"
#include "cli/table.h"
#include "cli/view.h"
#include "explore/ranking.h"
#include "spec/node.h"

#include <stdio.h>
#include <string.h>

static void add_number(struct table *table, uint64_t number)
{
    autofree char *text = text_format("%llu", (unsigned long long)number);

    table_add(table, text);
}

static void add_changes(struct table *table, const struct tried *tried)
{
    autofree char *text = text_format("+%llu -%llu in %llu", (unsigned long long)tried->added,
                                      (unsigned long long)tried->removed, (unsigned long long)tried->files);

    table_add(table, text);
}

static void add_exit(struct table *table, const struct tried *tried)
{
    autofree char *text = strcmp(tried->reason, "exited") == 0
                              ? text_format("%llu", (unsigned long long)tried->exit_code)
                              : text_format("%llu %s", (unsigned long long)tried->exit_code, tried->reason);

    table_add(table, text);
}

static void add_remark(struct table *table, const struct tried *tried)
{
    autotext struct text text = TEXT_NONE;

    if (tried->tampered.len)
        text_addf(&text, "changed %zu file%s of the score", tried->tampered.len,
                  tried->tampered.len == 1 ? "" : "s");
    if (tried->error)
        text_addf(&text, "%s%.120s", text.len ? "; " : "", tried->error);
    table_add(table, text_string(&text));
}

/* An id that leads nowhere only misleads. */
static bool is_kept(const struct results *results, enum explore_keep keep, const struct tried *tried)
{
    if (keep == KEEP_NONE || !tried->id)
        return false;
    return keep == KEEP_ALL || ranking_best(results, tried->task) == tried;
}

static void add_row(struct table *table, const struct tried *tried, bool tasks, bool kept)
{
    autotext struct text took = TEXT_NONE;

    view_took(tried->wall_us, &took);
    if (tasks)
        add_number(table, tried->task);
    add_number(table, tried->number);
    table_add(table, tried->score ? tried->score : "-");
    add_exit(table, tried);
    table_add(table, text_string(&took));
    add_changes(table, tried);
    add_remark(table, tried);
    table_add(table, kept ? tried->id : "-");
}

static void print_next(const struct results *results, enum explore_keep keep)
{
    const struct tried *best = results->len ? ranking_best(results, results->items[0].task) : NULL;

    if (!best)
        printf("\nno try was good%s\n", keep == KEEP_ALL ? "" : "; with --keep all what they left stays");
    else if (is_kept(results, keep, best))
        printf("\nbest: try %llu\n  cove diff %.12s\n  cove apply %.12s\n", (unsigned long long)best->number,
               best->id, best->id);
}

void ranked_table(const struct results *results, enum explore_keep keep, const char *score)
{
    static const char *const heads[] = { "TASK", "TRY", "SCORE", "EXIT", "TIME", "CHANGES", "REMARKS", "ID" };
    bool tasks = results->len && results->items[0].task;
    autotable struct table table = { .columns = ARRAY_LEN(heads) - !tasks };
    autofree struct ranked *sorted = ranking_sort(results);
    autotext struct text out = TEXT_NONE;

    (void)score;
    for (size_t i = !tasks; i < ARRAY_LEN(heads); i++)
        table_add(&table, heads[i]);
    for (size_t i = 0; i < results->len; i++)
        add_row(&table, sorted[i].tried, tasks, is_kept(results, keep, sorted[i].tried));
    table_write(&table, &out);
    fputs(text_string(&out), stdout);
    if (!tasks)
        print_next(results, keep);
}

void ranked_json(const struct results *results, enum explore_keep keep, const char *score)
{
    autonode struct node root = { .kind = NODE_MAP };
    autofree struct ranked *sorted = ranking_sort(results);
    autotext struct text out = TEXT_NONE;
    const struct tried *best = results->len ? ranking_best(results, results->items[0].task) : NULL;

    node_add(&root, "run", NODE_STRING, results->about.run);
    node_add(&root, "score", score ? NODE_STRING : NODE_NULL, score);
    if (best && is_kept(results, keep, best))
        node_add(&root, "best", NODE_STRING, best->id);
    else
        node_add(&root, "best", NODE_NULL, NULL);

    struct node *list = node_add(&root, "tries", NODE_LIST, NULL);

    for (size_t i = 0; i < results->len; i++) {
        struct node *node = node_add(list, NULL, NODE_MAP, NULL);

        tried_node(sorted[i].tried, node);
        node_add(node, "kept", NODE_BOOL, is_kept(results, keep, sorted[i].tried) ? "true" : "false");
    }
    node_write_json(&root, &out);
    puts(text_string(&out));
}
