#include "cli/allow.h"

#include "base/error.h"
#include "base/file.h"
#include "base/own.h"
#include "base/text.h"
#include "box/host.h"
#include "cli/policy_edit.h"
#include "cli/say.h"
#include "gateway/rules.h"
#include "spec/file.h"
#include "spec/forms.h"
#include "spec/node.h"
#include "spec/rule_forms.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

const struct option_row options_of_allow[] = {
    { .name = "address",
      .argument = "ADDRESS",
      .help = "Use this address for the name and no other; it may be private",
      .type = OPTION_STRING,
      .at = offsetof(struct run_options, address) },
    { .name = NULL },
};

static int read_rule(const char *word, const char *address, struct rule *out, struct error *err)
{
    const struct form_context context = { .places = PLACE_OWNER };
    autotext struct text why = TEXT_NONE, shown = TEXT_NONE;

    if (rule_read_target(&context, word, address, out, &why))
        return 0;
    node_show_text(word, &shown);
    return error_set(err, ERROR_INVALID, "%s %s", text_string(&shown), text_string(&why));
}

/* The directories above the file, for the user alone. */
static int make_parents(const char *path, struct error *err)
{
    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        autofree char *directory = text_format("%.*s", (int)(slash - path), path);

        if (mkdir(directory, 0700) < 0 && errno != EEXIST)
            return error_sys(err, "make %s", directory);
    }
    return 0;
}

/* Held while the file is read and written, so that two at a time lose nothing. */
static int lock_directory(const char *path, struct error *err)
{
    autofree char *directory = text_format("%.*s", (int)(strrchr(path, '/') - path), path);
    autoclose int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 || flock(fd, LOCK_EX) < 0)
        return error_sys(err, "lock %s", directory);
    return steal_fd(&fd);
}

/* 1 if it is there already. */
static int add_rule(const struct spec_sources *sources, const struct rule *rule, struct error *err)
{
    const struct file_rules trusted = { sources->uid, 0, "you or root", true };
    autotext struct text old = TEXT_NONE, new = TEXT_NONE, shown = TEXT_NONE;

    if (make_parents(sources->owner_file, err) < 0)
        return -1;
    text_add_inert(&shown, sources->owner_file);

    autoclose int lock = lock_directory(sources->owner_file, err);

    if (lock < 0 || file_read_trusted(sources->owner_file, &trusted, &old, err) < 0)
        return -1;
    if (old.len &&
        spec_check_policy(old.data, old.len, sources->owner_file, LAYER_OWNER, sources->home, err) < 0)
        return -1;

    int there = policy_edit_add(text_string(&shown), &old, rule, &new, err);

    if (there)
        return there;
    return file_deliver(sources->owner_file, new.data, new.len, err);
}

/* Whether the policy files already say as much, and if not although the rule is there, why. */
static int judge(const struct spec_sources *sources, const struct rule *rule, struct verdict *out,
                 struct error *err)
{
    const struct spec_request request = SPEC_REQUEST_NONE;
    autoorigins struct spec_origins origins = SPEC_ORIGINS_NONE;
    autospec struct spec spec = SPEC_NONE;
    bool below = rule->host[0] == '*';
    autofree char *host = text_format("%s%s", below ? "a" : "", rule->host + below);
    struct rules rules;

    if (spec_read(&request, sources, &spec, &origins, err) < 0)
        return -1;
    rules_init(&rules, spec.network, &spec.rules);
    rules_verdict(
        &rules,
        &(struct question){ .host = host, .host_len = strlen(host), .port = rule->port ? rule->port : 443 },
        out);
    out->rule = NULL; /* of the rules that go now */
    rules_free(&rules);
    return 0;
}

static int allow(const struct spec_sources *sources, const char *word, const char *address, struct error *err)
{
    struct rule rule;
    struct verdict verdict;
    autotext struct text shown = TEXT_NONE;
    int result, there;

    if (read_rule(word, address, &rule, err) < 0)
        return -1;
    rule_show(&rule, &shown);
    result = spec_may_add_rule(sources, &rule, "cove allow", err);
    if (result == 0)
        result = add_rule(sources, &rule, err);
    there = result == 1;
    if (result >= 0)
        result = judge(sources, &rule, &verdict, err);
    rule_free(&rule);
    if (result < 0)
        return -1;
    printf("%s: %s %s\n", text_string(&shown), there ? "is already in" : "added to", sources->owner_file);
    if (!verdict.allowed)
        say_warning("it is refused all the same: %s", verdict.why);
    return 0;
}

int cli_allow(struct options *options, struct error *err)
{
    autofree char *owner_file = NULL;
    autohost struct host host = { 0 };
    struct spec_sources sources;

    if (!options->words.len)
        return error_set(err, ERROR_INVALID, "say what to allow: cove allow HOST[:PORT]");
    if (host_read(&host, err) < 0)
        return -1;
    spec_sources_usual(&sources, host.home, host.cwd, host.uid, host.environ, &owner_file);
    for (size_t i = 0; i < options->words.len; i++)
        if (allow(&sources, options->words.items[i], options->run.address, err) < 0)
            return -1;
    return 0;
}
