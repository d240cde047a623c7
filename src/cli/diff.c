#include "cli/diff.h"

#include "base/error.h"
#include "base/linediff.h"
#include "base/own.h"
#include "base/text.h"
#include "changes/patch.h"
#include "cli/changed.h"
#include "cli/commands.h"
#include "cli/commits.h"
#include "cli/say.h"
#include "cli/view.h"
#include "spec/node.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const struct option_row options_of_diff[] = {
    { "stat", 0, NULL, "One line a file, with the number of lines that went and came", OPTION_BOOL,
      offsetof(struct run_options, stat) },
    { "name-only", 0, NULL, "Only the paths", OPTION_BOOL, offsetof(struct run_options, name_only) },
    { "json", 0, NULL, "Print JSON", OPTION_BOOL, offsetof(struct run_options, json) },
    { NULL },
};

/* On a terminal no byte of the sandbox does anything but be seen; in a file or pipe it is a patch. */
static void put(const struct text *text)
{
    autotext struct text shown = TEXT_NONE;

    if (!isatty(STDOUT_FILENO)) {
        fwrite(text_string(text), 1, text->len, stdout);
        return;
    }
    for (const char *at = text_string(text), *end = at + text->len; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        autofree char *line = text_format("%.*s", (int)((newline ? newline : end) - at), at);

        text_add_inert(&shown, line);
        text_add(&shown, "\n");
        at = newline ? newline + 1 : end;
    }
    fputs(text_string(&shown), stdout);
}

/* For people, who read it on a terminal; a patch in a file stays one. */
static void print_digest(const struct changed *changed)
{
    char digest[SHA256_TEXT];

    if (!isatty(STDOUT_FILENO))
        return;
    changed_digest(changed, digest);
    printf("# to bring home exactly this: cove apply --reviewed %s\n", digest);
}

static void print_patch(const struct changed *changed)
{
    struct patch_source source = { changed->upper, changed->base };

    for (size_t i = 0; i < changed->changes.len; i++) {
        const struct change *change = &changed->changes.items[i];
        autotext struct text text = TEXT_NONE;

        if (change->flags & ~(unsigned)(FLAG_EMPTY | FLAG_SPECIAL)) {
            text_add(&text, "# ");
            changed_describe(change, &text);
            text_add(&text, "\n");
        }
        patch_add(&source, change, &text);
        put(&text);
    }
    print_digest(changed);
}

static void print_stat(const struct changed *changed)
{
    static const char marks[] = { [CHANGE_REMOVED] = 'D', [CHANGE_ADDED] = 'A',   [CHANGE_CHANGED] = 'M',
                                  [CHANGE_MODE] = 'm',    [CHANGE_RETYPED] = 'T', [CHANGE_RENAMED] = 'R' };
    struct patch_source source = { changed->upper, changed->base };
    size_t removed = 0, added = 0;

    for (size_t i = 0; i < changed->changes.len; i++) {
        const struct change *change = &changed->changes.items[i];
        autotext struct text line = TEXT_NONE;
        struct linediff_count count;

        text_addf(&line, "%c ", marks[change->kind]);
        if (patch_count(&source, change, &count))
            text_addf(&line, "%6s%zu %6s%zu  ", "+", count.added, "-", count.removed);
        else
            text_addf(&line, "%18s", "");
        removed += count.removed;
        added += count.added;
        changed_describe(change, &line);
        puts(text_string(&line));
    }
    printf("%zu change%s, %zu line%s more, %zu fewer\n", changed->changes.len,
           changed->changes.len == 1 ? "" : "s", added, added == 1 ? "" : "s", removed);
}

static void print_names(const struct changed *changed)
{
    for (size_t i = 0; i < changed->changes.len; i++) {
        autotext struct text line = TEXT_NONE;

        if (isatty(STDOUT_FILENO))
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
        node_add(node, "target", NODE_STRING, side->target);
}

static void print_json(const struct changed *changed)
{
    autonode struct node root = { .kind = NODE_MAP };
    autotext struct text out = TEXT_NONE;

    char digest[SHA256_TEXT];

    changed_digest(changed, digest);
    node_add(&root, "digest", NODE_STRING, digest);
    node_add(&root, "id", NODE_STRING, changed->kept->id);
    node_add(&root, "workspace", NODE_STRING, changed->kept->record.workspace);
    struct node *list = node_add(&root, "changes", NODE_LIST, NULL);

    for (size_t i = 0; i < changed->changes.len; i++) {
        const struct change *change = &changed->changes.items[i];
        struct node *node = node_add(list, NULL, NODE_MAP, NULL);

        node_add(node, "path", NODE_STRING, change->path);
        node_add(node, "kind", NODE_STRING, changed_kind_name(change->kind));
        if (change->from)
            node_add(node, "from", NODE_STRING, change->from);
        struct node *marks = node_add(node, "flags", NODE_LIST, NULL);
        for (unsigned bit = 0; changed_flag_name(bit); bit++)
            if (change->flags >> bit & 1)
                node_add(marks, NULL, NODE_STRING, changed_flag_name(bit));
        add_side(node, "old", &change->old);
        add_side(node, "new", &change->new);
    }
    commits_add_node(changed, &root);
    node_write_json(&root, &out);
    puts(text_string(&out));
}

int cli_diff(const struct command *command, int argc, char **argv)
{
    autooptions struct options options = OPTIONS_NONE;
    autochanged struct changed changed = CHANGED_NONE;
    struct error err = { 0 };

    if (options_parse(command, argc, argv, &options, &err) < 0)
        return say_error(&err);
    if (options.run.help) {
        say_help(command);
        return 0;
    }
    if (changed_read(&options.words, &changed, &err) < 0)
        return which_error(&err);
    if (options.run.json)
        print_json(&changed);
    else if (options.run.name_only)
        print_names(&changed);
    else if (options.run.stat)
        print_stat(&changed);
    else
        print_patch(&changed);
    if (!options.run.json && !options.run.name_only)
        commits_print(&changed, options.run.stat ? "" : "# ");
    return fflush(stdout) == 0 ? 0 : EXIT_OWN_ERROR;
}
