#include "cli/remark.h"

#include "base/own.h"
#include "base/text.h"
#include "changes/changes.h"
#include "changes/review.h"
#include "changes/tricks.h"
#include "cli/changed.h"
#include "cli/paint.h"
#include "cli/say.h"
#include "cli/view.h"
#include "spec/node.h"

#include <inttypes.h>
#include <string.h>

enum { PATHS_MAX = 5 };

static void add_tricks(unsigned tricks, struct text *out)
{
    const char *between = "";

    text_add(out, " [Trojan Source: ");
    for (unsigned bit = 0; trick_says(bit); bit++)
        if (tricks >> bit & 1) {
            text_addf(out, "%s%s", between, trick_says(bit));
            between = ", ";
        }
    text_add(out, "]");
}

void remark_add(const struct change *change, const struct review_item *item, struct text *out)
{
    const struct classify_verdict *verdict = &item->verdict;

    changed_describe(change, out);
    if (verdict->class != CLASSIFY_ORDINARY)
        text_addf(out, " [class %s: %s%s%s]", verdict->class == CLASSIFY_AUTORUN ? "A" : "B", verdict->reason,
                  *verdict->part ? ": " : "", verdict->part);
    if (item->hides) {
        text_add(out, " [hides: ");
        text_add_inert(out, item->hides);
        text_add(out, "]");
    }
    if (item->tricks)
        add_tricks(item->tricks, out);
}

bool remark_is_needed(const struct change *change, const struct review_item *item)
{
    return change->flags & ~(unsigned)(FLAG_EMPTY | FLAG_SPECIAL | FLAG_LEFT_OUT) ||
           item->verdict.class != CLASSIFY_ORDINARY || item->hides || item->tricks;
}

void remark_add_fold(const struct review_fold *fold, struct text *out)
{
    text_add_inert(out, *fold->directory ? fold->directory : ".");
    text_addf(out, "/: %zu file%s, ", fold->files, fold->files == 1 ? "" : "s");
    view_space(fold->bytes, out);
}

static void warn_of_base(const struct changes *changes, const struct review *review)
{
    autotext struct text names = TEXT_NONE;
    size_t shown = 0;

    for (size_t i = 0; i < changes->len && shown < PATHS_MAX; i++)
        if (changes->items[i].flags & FLAG_BASE_CHANGED && !review->items[i].folded) {
            text_addf(&names, "%s%.60s", shown ? ", " : "", changes->items[i].path);
            shown++;
        }
    if (review->base_changed > shown)
        text_addf(&names, " and %zu more", review->base_changed - shown);
    if (shown)
        say_warning("base changed since the sandbox began: %s", text_string(&names));
}

static void say_class(size_t count, const char *when)
{
    if (count)
        fprintf(stderr, "%zu change%s %s\n", count, count == 1 ? " acts" : "s act", when);
}

void remark_summary(const struct changes *changes, const struct review *review)
{
    warn_of_base(changes, review);
    if (review->too_long)
        say_warning("the rules of %.200s take too long to follow; what they ignore is shown", review->too_long);
    if (!paint_is_terminal(stderr))
        return;
    say_class(review->autorun, "by merely being there (class A)");
    say_class(review->build, "when you build, test or commit (class B)");
}

/* --- JSON --- */

void remark_node(const struct change *change, const struct review_item *item, struct node *out)
{
    struct node *list;

    node_add(out, "class", NODE_STRING, classify_name(item->verdict.class));
    if (item->verdict.class != CLASSIFY_ORDINARY) {
        node_add(out, "reason", NODE_STRING, item->verdict.reason);
        node_add_bytes(out, "part", item->verdict.part);
    }
    if (item->hides)
        node_add_bytes(out, "hides", item->hides);
    list = node_add(out, "flags", NODE_LIST, NULL);
    for (unsigned bit = 0; changed_flag_name(bit); bit++)
        if (change->flags >> bit & 1)
            node_add(list, NULL, NODE_STRING, changed_flag_name(bit));
    list = node_add(out, "tricks", NODE_LIST, NULL);
    for (unsigned bit = 0; trick_name(bit); bit++)
        if (item->tricks >> bit & 1)
            node_add(list, NULL, NODE_STRING, trick_name(bit));
}

static void add_number(struct node *map, const char *key, uint64_t value)
{
    autofree char *number = text_format("%" PRIu64, value);

    node_add(map, key, NODE_NUMBER, number);
}

void remark_node_all(const struct review *review, struct node *out)
{
    struct node *counts = node_add(out, "counts", NODE_MAP, NULL);

    add_number(counts, "autorun", review->autorun);
    add_number(counts, "build", review->build);
    add_number(counts, "folded", review->folded);
    add_number(counts, "base_changed", review->base_changed);

    struct node *list = node_add(out, "ignored", NODE_LIST, NULL);

    for (size_t i = 0; i < review->len; i++) {
        struct node *fold = node_add(list, NULL, NODE_MAP, NULL);

        node_add_bytes(fold, "directory", review->folds[i].directory);
        add_number(fold, "files", review->folds[i].files);
        add_number(fold, "bytes", review->folds[i].bytes);
    }
}
