#include "cli/allow.h"

#include "base/delivery.h"
#include "base/error.h"
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
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

const struct option_row options_of_allow[] = {
    { .name = "address",
      .argument = "ADDRESS",
      .help = "Use this address for the name and no other; it may be private",
      .type = OPTION_STRING,
      .at = offsetof(struct run_options, address) },
    { .name = "list",
      .help = "Say which rules your policy file has, and where",
      .type = OPTION_BOOL,
      .at = offsetof(struct run_options, list) },
    { .name = "remove",
      .help = "Take the rule for HOST[:PORT] out of your policy file again",
      .type = OPTION_BOOL,
      .at = offsetof(struct run_options, take_back) },
    { .name = NULL },
};

static int read_rule(const char *word, const char *address, struct rule *out, struct error *err)
{
    const struct form_context context = { .places = PLACE_OWNER };
    autotext struct text why = TEXT_NONE, shown = TEXT_NONE;
    struct address read;

    if (address && address_read(address, strlen(address), &read) != ADDRESS_PLAIN) {
        node_show_text(address, &shown);
        error_set(err, ERROR_INVALID, "--address: %s must be an address such as 192.0.2.1 or 2001:db8::1",
                  text_string(&shown));
        return -1;
    }
    if (rule_read_target(&context, word, address, out, &why))
        return 0;
    node_show_text(word, &shown);
    error_set(err, ERROR_INVALID, "%s %s", text_string(&shown), text_string(&why));
    return -1;
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

/* 1 if there is none. */
static int read_file(const struct spec_sources *sources, struct text *out, struct error *err)
{
    const struct file_rules trusted = { sources->uid, 0, "you or root", true };
    int got = file_read_trusted(sources->owner_file, &trusted, out, err);

    if (got == 0 && out->len &&
        spec_check_policy(out->data, out->len, sources->owner_file, LAYER_OWNER, sources->home, err) < 0)
        return -1;
    return got;
}

typedef int edit(const char *shown, const struct text *old, const struct rule *rule, struct text *out,
                 struct error *err);

/* 1 if there is nothing to be done. */
static int edit_file(const struct spec_sources *sources, edit *how, const struct rule *rule, struct error *err)
{
    autotext struct text old = TEXT_NONE, new = TEXT_NONE, shown = TEXT_NONE;

    text_add_inert(&shown, sources->owner_file);

    autoclose int lock = lock_directory(sources->owner_file, err);

    if (lock < 0 || read_file(sources, &old, err) < 0)
        return -1;

    int nothing = how(text_string(&shown), &old, rule, &new, err);

    if (nothing)
        return nothing;

    autodelivery struct delivery place = DELIVERY_NONE;

    return delivery_open(sources->owner_file, &place, err) < 0 ? -1
                                                               : delivery_put(&place, new.data, new.len, err);
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
        result = make_parents(sources->owner_file, err);
    if (result == 0)
        result = edit_file(sources, policy_edit_add, &rule, err);
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

/* The name of one that is only allowed at an address, whichever that is. */
static bool read_pinned(const char *word, struct rule *out)
{
    struct error ignored;

    if (read_rule(word, "192.0.2.1", out, &ignored) < 0)
        return false;
    free(out->address);
    out->address = NULL;
    return true;
}

static int take_back(const struct spec_sources *sources, const char *word, const char *address,
                     struct error *err)
{
    struct rule rule;
    struct verdict verdict = { .allowed = false };
    autotext struct text shown = TEXT_NONE;
    int result = 1;

    if (read_rule(word, address, &rule, err) < 0 && (address || !read_pinned(word, &rule)))
        return -1;
    rule_show(&rule, &shown);
    if (access(sources->owner_file, F_OK) == 0)
        result = edit_file(sources, policy_edit_remove, &rule, err);
    if (result == 1) {
        error_set(err, ERROR_MISSING, "no rule in %s says just %s", sources->owner_file, text_string(&shown));
        result = error_hint(err, "those that are there: cove allow --list");
    }
    if (result == 0)
        result = judge(sources, &rule, &verdict, err);
    rule_free(&rule);
    if (result < 0)
        return -1;
    printf("%s: removed from %s\n", text_string(&shown), sources->owner_file);
    if (verdict.allowed)
        say_warning("it is allowed all the same: %s", verdict.why);
    return 0;
}

static void list_one(const struct rule *rule, unsigned line, void *owner)
{
    const struct spec_sources *sources = owner;
    autotext struct text shown = TEXT_NONE;

    rule_show(rule, &shown);
    printf("%-40s  %s:%u\n", text_string(&shown), sources->owner_file, line);
}

static int list(struct spec_sources *sources, struct error *err)
{
    autotext struct text old = TEXT_NONE;

    if (read_file(sources, &old, err) < 0)
        return -1;
    return policy_edit_each(&old, list_one, sources)
               ? 0
               : error_set(err, ERROR_INVALID, "%s cannot be read", sources->owner_file);
}

int cli_allow(struct options *options, struct error *err)
{
    bool removes = options->run.take_back, lists = options->run.list;
    autofree char *owner_file = NULL;
    autohost struct host host = { 0 };
    struct spec_sources sources;

    if (lists && (removes || options->words.len))
        return error_set(err, ERROR_INVALID, "--list takes no host: it shows them all");
    if (!lists && !options->words.len)
        return error_set(err, ERROR_INVALID, "say what to allow: cove allow HOST[:PORT]");
    if (host_read(&host, err) < 0)
        return -1;
    spec_sources_usual(&sources, host.home, host.cwd, host.uid, host.environ, &owner_file);
    if (lists)
        return list(&sources, err);
    for (size_t i = 0; i < options->words.len; i++)
        if ((removes ? take_back : allow)(&sources, options->words.items[i], options->run.address, err) < 0)
            return -1;
    return 0;
}
