#include "cli/commands.h"

#include "spec/suggest.h"

#include <string.h>

const struct command *command_find(const char *name)
{
    for (size_t i = 0; i < commands_len; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

const char *command_suggest(const char *name)
{
    struct suggest near = SUGGEST_NONE;

    for (size_t i = 0; i < commands_len; i++)
        if (!commands[i].hidden)
            suggest_offer(&near, name, commands[i].name);
    return near.best;
}
