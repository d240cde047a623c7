#include "cli/commands.h"

#include "base/error.h"
#include "spec/suggest.h"

#include <string.h>

const struct command *command_find(const char *name)
{
    for (size_t i = 0; i < commands_len; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

int command_unknown(const char *name, struct error *err)
{
    struct suggest near = SUGGEST_NONE;

    for (size_t i = 0; i < commands_len; i++)
        if (!commands[i].hidden)
            suggest_offer(&near, name, commands[i].name);
    error_set(err, ERROR_INVALID, "there is no command `%.60s`", name);
    if (near.best)
        return error_hint(err, "did you mean `cove %s`?", near.best);
    return error_hint(err, "`cove help` lists them");
}
