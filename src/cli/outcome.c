#include "cli/outcome.h"

#include "base/own.h"
#include "base/text.h"
#include "changes/apply.h"
#include "changes/review.h"
#include "cli/changed.h"
#include "cli/conflict.h"
#include "cli/remark.h"
#include "spec/node.h"

#include <stdio.h>

static const struct {
    const char *word, *name; /* for people, in JSON */
    const char *counted;     /* in the sum; NULL: the sum begins with it */
} outcomes[] = {
    [APPLY_DONE] = { "done", "done", NULL },
    [APPLY_SAME] = { "same", "same", "there already" },
    [APPLY_CONFLICT] = { "CONFLICT", "conflict", "in conflict" },
    [APPLY_REFUSED] = { "REFUSED", "refused", "refused" },
    [APPLY_FAILED] = { "FAILED", "failed", "failed" },
    [APPLY_BESIDE] = { "beside", "beside", "put beside yours" },
    [APPLY_LEFT] = { "left", "left", "left" },
    [APPLY_SETTLED] = { "yours", "settled", "settled as yours" },
};

static const char *word_of(const struct outcome *outcome, size_t index)
{
    enum apply_outcome came = outcome->results[index].outcome;

    return outcome->dry_run && came == APPLY_DONE ? "would" : outcomes[came].word;
}

struct counts {
    size_t of[ARRAY_LEN(outcomes)];
};

static struct counts count(const struct outcome *outcome)
{
    struct counts counts = { 0 };

    for (size_t i = 0; i < outcome->changed->changes.len; i++)
        counts.of[outcome->results[i].outcome] += !outcome->review->items[i].folded;
    return counts;
}

bool outcome_is_clean(const struct outcome *outcome)
{
    struct counts counts = count(outcome);

    return !counts.of[APPLY_REFUSED] && !counts.of[APPLY_CONFLICT] && !counts.of[APPLY_FAILED];
}

static bool has_reason(const struct apply_result *result)
{
    return result->outcome == APPLY_CONFLICT || result->outcome == APPLY_REFUSED ||
           result->outcome == APPLY_FAILED;
}

static void print_folds(const struct review *review)
{
    for (size_t i = 0; i < review->len; i++) {
        autotext struct text line = TEXT_NONE;

        remark_add_fold(&review->folds[i], &line);
        printf("%-8s %s, ignored by git; --ignored brings them\n", outcomes[APPLY_LEFT].word,
               text_string(&line));
    }
}

static void print_counts(const struct outcome *outcome)
{
    struct counts counts = count(outcome);

    printf("%zu %s", counts.of[APPLY_DONE], outcome->dry_run ? "would be brought home" : "brought home");
    for (size_t i = 0; i < ARRAY_LEN(outcomes); i++)
        if (counts.of[i] && outcomes[i].counted)
            printf(", %zu %s", counts.of[i], outcomes[i].counted);
    puts("");
    if (counts.of[APPLY_SETTLED] && !outcome->dry_run && outcome->at_home)
        puts("What stays yours is settled: cove diff and cove apply leave it out unless it is named.");
}

/* The only way for a file that acts by being there, where nobody was asked. */
static void print_way_home(const struct outcome *outcome)
{
    const struct kept *kept = outcome->changed->kept;

    for (size_t i = 0; i < outcome->changed->changes.len; i++)
        if (outcome->results[i].outcome == APPLY_LEFT && !outcome->review->items[i].folded &&
            outcome->review->items[i].verdict.class == CLASSIFY_AUTORUN) {
            printf("To bring a file of class A home: cove apply --allow-autorun PATH %s\n",
                   kept->record.name ? kept->record.name : kept->id);
            return;
        }
}

void outcome_print(const struct outcome *outcome)
{
    const struct changes *changes = &outcome->changed->changes;
    size_t conflicts = 0;

    for (size_t i = 0; i < changes->len; i++) {
        const struct apply_result *result = &outcome->results[i];
        autotext struct text line = TEXT_NONE;

        if (outcome->review->items[i].folded)
            continue;
        text_addf(&line, "%-8s ", word_of(outcome, i));
        if (has_reason(result)) {
            changed_describe(&changes->items[i], &line);
            text_add(&line, ": ");
            text_add_inert(&line, result->why.text);
        } else {
            remark_add(&changes->items[i], &outcome->review->items[i], &line);
            text_add(&line, changes->items[i].kind == CHANGE_REMOVED ? " (removed)" : "");
        }
        puts(text_string(&line));
        conflicts += result->outcome == APPLY_CONFLICT;
    }
    print_folds(outcome->review);
    print_counts(outcome);
    print_way_home(outcome);
    if (!conflicts)
        return;
    fflush(stdout);
    for (size_t i = 0; i < changes->len; i++)
        if (outcome->results[i].outcome == APPLY_CONFLICT)
            conflict_show(outcome->changed, outcome->tree, &changes->items[i]);
    conflict_show_ways(outcome->changed->kept);
}

void outcome_add_nodes(const struct outcome *outcome, struct node *root)
{
    struct counts counts = count(outcome);

    remark_node_all(outcome->review, root);

    struct node *sums = node_add(root, "outcomes", NODE_MAP, NULL);

    for (size_t i = 0; i < ARRAY_LEN(outcomes); i++) {
        autofree char *number = text_format("%zu", counts.of[i]);

        node_add(sums, outcomes[i].name, NODE_NUMBER, number);
    }

    struct node *list = node_add(root, "changes", NODE_LIST, NULL);

    for (size_t i = 0; i < outcome->changed->changes.len; i++) {
        const struct change *change = &outcome->changed->changes.items[i];

        if (outcome->review->items[i].folded)
            continue;

        struct node *node = node_add(list, NULL, NODE_MAP, NULL);

        node_add_bytes(node, "path", change->path);
        node_add(node, "kind", NODE_STRING, changed_kind_name(change->kind));
        node_add(node, "outcome", NODE_STRING, outcomes[outcome->results[i].outcome].name);
        if (has_reason(&outcome->results[i]))
            node_add_bytes(node, "why", outcome->results[i].why.text);
        remark_node(change, &outcome->review->items[i], node);
    }
}
