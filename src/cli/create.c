#include "cli/create.h"

#include "base/error.h"
#include "cli/staying.h"
#include "keeper/kept.h"
#include "spec/node.h"

#include <stddef.h>
#include <stdio.h>

const struct option_row options_of_create[] = {
    { "name", 0, "NAME", "Name the sandbox", OPTION_STRING, offsetof(struct run_options, name) },
    { "label", 0, "KEY[=VALUE]", "Label the sandbox; may be given again", OPTION_LIST,
      offsetof(struct run_options, labels) },
    { "ttl", 0, "TIME", "End it so long after it was started (8h)", OPTION_STRING,
      offsetof(struct run_options, ttl) },
    { "idle", 0, "TIME", "End it when no command has run in it for so long (30m)", OPTION_STRING,
      offsetof(struct run_options, idle) },
    { "then", 0, "stop|pause|remove",
      "What --ttl and --idle do: stop it and keep its files, pause it, or remove it", OPTION_STRING,
      offsetof(struct run_options, then) },
    { "no-checkpoints", 0, NULL,
      "Make no checkpoint after each step: nothing to go back to, and a little faster", OPTION_BOOL,
      offsetof(struct run_options, no_checkpoints) },
    { "json", 0, NULL, "Print a JSON object with its id", OPTION_BOOL, offsetof(struct run_options, json) },
    { NULL },
};

int cli_create(struct options *options, struct error *err)
{
    bool json = options->run.json;
    char id[ID_LENGTH + 1];

    if (options->words.len) {
        error_set(err, ERROR_INVALID, "`cove create` runs no command");
        return error_hint(err, "cove exec does: cove exec $(cove create) -- %s", options->words.items[0]);
    }

    int made = staying_create(options, id, err);

    if (made < 0)
        return -1;
    printf(json ? "{\"id\":\"%s\"}\n" : "%s\n", id);
    if (made == 0)
        return 0;
    return error_hint(
        err, "the sandbox runs without it: look with cove exec %.*s -- sh, remove it with cove rm -f %.*s",
        KEPT_ID_SHOWN, id, KEPT_ID_SHOWN, id);
}
