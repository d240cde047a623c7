#include "cli/version.h"

#include <stddef.h>
#include <stdio.h>

#ifdef COVE_UNSAFE
const char version_build[] = "unsafe test build, do not use";
#else
const char version_build[] = "release";
#endif

const struct option_row options_of_version[] = {
    { .name = "json", .help = "print JSON", .type = OPTION_BOOL, .at = offsetof(struct run_options, json) },
    { .name = NULL },
};

int cli_version(struct options *options, struct error *err)
{
    (void)err;
    if (options->run.json)
        printf("{\"version\":\"%s\",\"build\":\"%s\"}\n", COVE_VERSION, version_build);
    else
        printf("cove %s (%s)\n", COVE_VERSION, version_build);
    return 0;
}
