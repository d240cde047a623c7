#include "cli/diff.h"

#include "base/error.h"
#include "base/linediff.h"
#include "base/own.h"
#include "base/text.h"
#include "changes/digest.h"
#include "changes/patch.h"
#include "changes/review.h"
#include "cli/between.h"
#include "cli/changed.h"
#include "cli/commits.h"
#include "cli/paint.h"
#include "cli/point.h"
#include "cli/remark.h"
#include "cli/say.h"
#include "cli/view.h"
#include "cli/which.h"
#include "spec/node.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { BINARY_MOST = 64 << 10 }; /* of a binary file, without being asked for */

const struct option_row options_of_diff[] = {
    { "stat", 0, NULL, "One line a file, with the number of lines that went and came", OPTION_BOOL,
      offsetof(struct run_options, stat) },
    { "name-only", 0, NULL, "Only the paths", OPTION_BOOL, offsetof(struct run_options, name_only) },
    { "ignored", 0, NULL, "Show also what git ignores, file by file", OPTION_BOOL,
      offsetof(struct run_options, ignored) },
    { "binary", 0, NULL, "In a file or a pipe, write also the bytes of binary files above 64 KiB", OPTION_BOOL,
      offsetof(struct run_options, binary) },
    { "json", 0, NULL, "Print JSON", OPTION_BOOL, offsetof(struct run_options, json) },
    { "step", 0, "N", "Only what this step of a sandbox that stays changed", OPTION_STRING,
      offsetof(struct run_options, step) },
    { NULL },
};

/* One line for what git ignores in a directory; it begins as remarks do. */
static void print_folds(const struct review *review, const char *begin)
{
    for (size_t i = 0; i < review->len; i++) {
        autotext struct text line = TEXT_NONE;

        text_add(&line, begin);
        remark_add_fold(&review->folds[i], &line);
        text_add(&line, ", ignored by git; --ignored shows them\n");
        paint_patch(stdout, &line);
    }
}

static void print_settled(const struct changed *changed, const char *begin)
{
    if (changed->settled)
        printf("%s%zu settled as yours; a PATH that names them shows them\n", begin, changed->settled);
}

/* For people, who read it on a terminal; a patch in a file stays one.  With the words that this was asked for
 * with, so that it can be typed as it stands. */
static void print_digest(const struct changed *changed, const struct options *options,
                         const struct review *review)
{
    autotext struct text words = TEXT_NONE, shown = TEXT_NONE;
    char digest[SHA256_TEXT];

    if (!isatty(STDOUT_FILENO) || changed->from || kept_is_alive(changed->kept))
        return;
    digest_changes(&changed->changes, review->contents, digest);
    for (size_t i = 0; i < options->words.len; i++) {
        text_add(&words, " ");
        text_add_shell_word(&words, options->words.items[i]);
    }
    text_addf(&shown, "# to bring home exactly this: cove apply%s --reviewed %s",
              options->run.ignored ? " --ignored" : "", digest);
    text_add_inert(&shown, text_string(&words));
    text_add(&shown, "\n");
    paint_patch(stdout, &shown);
}

static void print_patch(const struct changed *changed, const struct options *options,
                        const struct review *review)
{
    struct patch_source source = { changed->upper, changed->base, paint_is_terminal(stdout),
                                   options->run.binary ? 0 : BINARY_MOST };

    for (size_t i = 0; i < changed->changes.len; i++) {
        const struct change *change = &changed->changes.items[i];
        autotext struct text text = TEXT_NONE;

        if (review->items[i].folded)
            continue;
        if (remark_is_needed(change, &review->items[i])) {
            text_add(&text, "# ");
            remark_add(change, &review->items[i], &text);
            text_add(&text, "\n");
        }
        patch_add(&source, &changed->changes, i, &text);
        paint_patch(stdout, &text);
    }
    print_folds(review, "# ");
    print_settled(changed, "# ");
    print_digest(changed, options, review);
}

static void add_size(const struct change *change, struct text *out)
{
    autotext struct text sizes = TEXT_NONE;

    if (change->old.type == SIDE_FILE || change->new.type == SIDE_FILE) {
        view_space(change->old.size, &sizes);
        text_add(&sizes, " > ");
        view_space(change->new.size, &sizes);
    }
    text_addf(out, "%17s  ", text_string(&sizes));
}

static void print_stat(const struct changed *changed, const struct review *review)
{
    static const char marks[] = { [CHANGE_REMOVED] = 'D', [CHANGE_ADDED] = 'A',   [CHANGE_CHANGED] = 'M',
                                  [CHANGE_MODE] = 'm',    [CHANGE_RETYPED] = 'T', [CHANGE_RENAMED] = 'R' };
    struct patch_source source = { changed->upper, changed->base, true };
    size_t removed = 0, added = 0, shown = 0;

    for (size_t i = 0; i < changed->changes.len; i++) {
        const struct change *change = &changed->changes.items[i];
        autotext struct text line = TEXT_NONE;
        struct linediff_count count;

        if (review->items[i].folded)
            continue;
        text_addf(&line, "%c ", marks[change->kind]);
        if (patch_count(&source, change, &count))
            text_addf(&line, "%8zu+ %6zu-  ", count.added, count.removed);
        else
            add_size(change, &line);
        removed += count.removed;
        added += count.added;
        shown++;
        remark_add(change, &review->items[i], &line);
        puts(text_string(&line));
    }
    print_folds(review, "i                    ");
    print_settled(changed, "y                    ");
    printf("%zu change%s", shown, shown == 1 ? "" : "s");
    if (added)
        printf(", %zu line%s more", added, added == 1 ? "" : "s");
    if (removed)
        printf(", %zu %sfewer", removed, added ? "" : removed == 1 ? "line " : "lines ");
    puts("");
}

static void print_names(const struct changed *changed, const struct review *review)
{
    for (size_t i = 0; i < changed->changes.len; i++) {
        autotext struct text line = TEXT_NONE;

        if (review->items[i].folded)
            continue;
        if (paint_is_terminal(stdout))
            text_add_inert(&line, changed->changes.items[i].path);
        else
            text_add(&line, changed->changes.items[i].path);
        puts(text_string(&line));
    }
}

static void add_side(struct node *parent, const char *key, const struct side *side)
{
    autofree char *size = text_format("%" PRIu64, side->size),
                  *mode = text_format("%04o", (unsigned)side->mode);
    struct node *node;

    if (side->type == SIDE_NONE)
        return;
    node = node_add(parent, key, NODE_MAP, NULL);
    node_add(node, "mode", NODE_STRING, mode);
    node_add(node, "size", NODE_NUMBER, size);
    node_add(node, "type", NODE_STRING, changed_side_name(side->type));
    if (side->target)
        node_add_bytes(node, "target", side->target);
}

/* What can be brought home has a digest to name it by; what lies between two points is only looked at. */
static void add_head(const struct changed *changed, const struct review *review, struct node *root)
{
    autofree char *settled = text_format("%zu", changed->settled);
    char digest[SHA256_TEXT];

    node_add(root, "id", NODE_STRING, changed->kept->id);
    node_add_bytes(root, "workspace", changed->kept->record.workspace);
    if (changed->from) {
        node_add(root, "from", NODE_STRING, changed->from);
        node_add(root, "to", NODE_STRING, changed->to);
        return;
    }
    digest_changes(&changed->changes, review->contents, digest);
    node_add(root, "digest", NODE_STRING, digest);
    node_add(root, "running", NODE_BOOL, kept_is_alive(changed->kept) ? "true" : "false");
    node_add(root, "settled", NODE_NUMBER, settled);
}

static void print_json(const struct changed *changed, const struct review *review)
{
    autonode struct node root = { .kind = NODE_MAP };
    autotext struct text out = TEXT_NONE;

    add_head(changed, review, &root);
    remark_node_all(review, &root);
    struct node *list = node_add(&root, "changes", NODE_LIST, NULL);

    for (size_t i = 0; i < changed->changes.len; i++) {
        const struct change *change = &changed->changes.items[i];

        if (review->items[i].folded)
            continue;

        struct node *node = node_add(list, NULL, NODE_MAP, NULL);

        node_add_bytes(node, "path", change->path);
        node_add(node, "kind", NODE_STRING, changed_kind_name(change->kind));
        if (change->from)
            node_add_bytes(node, "from", change->from);
        remark_node(change, &review->items[i], node);
        add_side(node, "old", &change->old);
        add_side(node, "new", &change->new);
    }
    if (!changed->from && !kept_is_alive(changed->kept))
        commits_add_node(changed, review->elsewhere, &root);
    node_write_json(&root, &out);
    puts(text_string(&out));
}

static void print(const struct changed *changed, const struct options *options, const struct review *review)
{
    if (options->run.json)
        print_json(changed, review);
    else if (options->run.name_only)
        print_names(changed, review);
    else if (options->run.stat)
        print_stat(changed, review);
    else
        print_patch(changed, options, review);
}

/* The first word may be a path with an @ as well. */
static bool names_a_step(const struct strings *words)
{
    autowhich struct which which = WHICH_NONE;
    autofree char *id = words->len && strchr(words->items[0], '@') ? text_copy(words->items[0]) : NULL;
    struct error ignored;

    return id && point_split(id) && which_read_for(&which, id, &ignored) == 0 &&
           kept_find(&which.all, id, &ignored);
}

int cli_diff(struct options *options, struct error *err)
{
    autochanged struct changed changed = CHANGED_NONE;
    autoreview struct review review = REVIEW_NONE;

    struct changed_wish wish = { .words = &options->words, .running = true };

    if (names_a_step(&options->words) && point_take_step(options, err) < 0)
        return -1;
    if ((between_is_asked(options) ? between_read(options, &changed, err)
                                   : changed_read(&wish, &changed, err)) < 0)
        return -1;

    struct patch_source source = { changed.upper, changed.base, true };

    changed_review(&changed, options->run.ignored, &review);
    if (!changed.from && (options->run.json || paint_is_terminal(stdout)))
        review_digest(&source, &changed.changes, &review);
    print(&changed, options, &review);
    /* No git is started on what is just being written. */
    if (!changed.from && !options->run.json && !options->run.name_only && !kept_is_alive(changed.kept))
        commits_print(&changed, review.elsewhere, options->run.stat ? "" : "# ");
    if (fflush(stdout) != 0)
        return EXIT_OWN_ERROR;
    remark_summary(&changed.changes, &review);
    if (!changed.from)
        changed_tell_elsewhere(&changed);
    return 0;
}
