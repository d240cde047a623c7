#include "tests/unit/spec/unit_layers.h"

#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "spec/values.h"
#include "tests/support/unit.h"

#include <stdlib.h>
#include <unistd.h>

static const struct command run = { .name = "run", .spec = true };

static const char *write_layer(const struct unit_scratch *scratch, const char *name, const char *content)
{
    return content ? text_copy(unit_scratch_file(scratch, name, content)) : NULL;
}

static void parse_flags(const struct layers *layers, const char *policy, struct options *options,
                        struct error *err)
{
    static char name[] = "run", policy_flag[] = "--policy";
    char *argv[32] = { name };
    int argc = 1;

    if (policy) {
        argv[argc++] = policy_flag;
        argv[argc++] = (char *)(uintptr_t)policy;
    }
    for (size_t i = 0; layers->flags[i]; i++)
        argv[argc++] = (char *)(uintptr_t)layers->flags[i];
    if (options_parse(&run, argc, argv, options, err) < 0)
        fail_msg("%s", err->text);
}

void layers_read(const struct unit_scratch *scratch, const struct layers *layers, struct outcome *out)
{
    static char lang[] = "LANG=C.UTF-8";
    static char *variables[] = { lang, NULL };
    char *admin = (char *)(uintptr_t)write_layer(scratch, "admin.yaml", layers->admin);
    char *owner = (char *)(uintptr_t)write_layer(scratch, "owner.yaml", layers->owner);
    char *policy = (char *)(uintptr_t)write_layer(scratch, "policy.yaml", layers->policy);
    const struct spec_sources sources = { admin,      geteuid(),   owner,
                                          "/home/me", "/work/dir", geteuid() ? geteuid() : 1000,
                                          variables };
    struct options options = OPTIONS_NONE;

    *out = (struct outcome){ .err = calloc(1, sizeof *out->err) };
    unlinkat(scratch->dir, "cove.yaml", 0);
    if (layers->repository)
        unit_scratch_file(scratch, "cove.yaml", layers->repository);
    parse_flags(layers, policy, &options, out->err);
    out->result = spec_read(&options.spec, &sources, &out->spec, &out->origins, out->err);
    if (out->result == 0) {
        out->repository = true;
        out->result =
            spec_narrow_by_repository(&out->spec, scratch->dir, scratch->path, &out->origins, out->err);
    }
    options_free(&options);
    free(admin);
    free(owner);
    free(policy);
}

void outcome_free(struct outcome *outcome)
{
    spec_free(&outcome->spec);
    spec_origins_free(&outcome->origins);
    free(outcome->err);
}

char *layers_yaml(const struct field *field, const char *value)
{
    struct text yaml = TEXT_NONE;
    const char *key = field->key;
    int depth = 0;

    for (const char *dot; (dot = strchr(key, '.')) != NULL; key = dot + 1, depth++)
        text_addf(&yaml, "%.*s: {", (int)(dot - key), key);
    text_addf(&yaml, "%s: %s%.*s\n", key, value, depth, "}}}}");
    return text_steal(&yaml);
}

char *layers_shown(const struct field *field, const struct spec *spec)
{
    struct text shown = TEXT_NONE;

    value_show(field, spec, &shown);
    return text_steal(&shown);
}
