#include "gateway/registries.h"

#include "base/own.h"
#include "base/text.h"
#include "gateway/rules.h"
#include "gateway/settings.h"
#include "gateway/url.h"
#include "spec/spec.h"

#include <fcntl.h>
#include <glob.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* Files are small; a program, in which a default is looked for, is not. */
enum { FILE_MAX = 1 << 20, PROGRAM_MAX = 256 << 20, HOSTS_MAX = 64 };

/* How a file is read. */
enum reader {
    READ_EQUALS,
    READ_COLON,
    READ_DEB,
    READ_SCOPES,  /* npmrc, of which only @scope:registry counts: the registry itself came from elsewhere */
    READ_PROGRAM, /* something else, in which `key` stands right before what is meant */
};

/* How much a row counts. */
enum weight {
    FIRST, /* the first of these that says something is the registry */
    EXTRA, /* counts beside it */
};

/* One place where a tool is told of hosts.  The first rows are the strongest, as the tools have it: the user's
 * variables and files, the system's, then what the tool has of itself. */
static const struct source {
    enum registry registry;
    enum weight weight;
    enum reader reader;
    const char *path; /* a pattern; ~ is the home directory; "$NAME": a variable */
    const char *key;
} sources[] = {
    { REGISTRY_NPM, FIRST, READ_EQUALS, "$npm_config_registry", "" },
    { REGISTRY_NPM, FIRST, READ_EQUALS, "$NPM_CONFIG_REGISTRY", "" },
    { REGISTRY_NPM, FIRST, READ_EQUALS, "~/.npmrc", "registry" },
    { REGISTRY_NPM, FIRST, READ_EQUALS, "/etc/npmrc", "registry" },
    { REGISTRY_NPM, FIRST, READ_EQUALS, "/usr/etc/npmrc", "registry" },
    { REGISTRY_NPM, FIRST, READ_EQUALS, "/usr/local/etc/npmrc", "registry" },
    { REGISTRY_NPM, FIRST, READ_EQUALS, "/usr/lib/node_modules/npm/npmrc", "registry" },
    { REGISTRY_NPM, EXTRA, READ_SCOPES, "~/.npmrc", ":registry" },
    { REGISTRY_NPM, EXTRA, READ_SCOPES, "/etc/npmrc", ":registry" },
    { REGISTRY_NPM, EXTRA, READ_SCOPES, "/usr/etc/npmrc", ":registry" },
    { REGISTRY_NPM, EXTRA, READ_SCOPES, "/usr/local/etc/npmrc", ":registry" },
#define NPM_DEFINITIONS "npm/node_modules/@npmcli/config/lib/definitions/definitions.js"
    { REGISTRY_NPM, FIRST, READ_PROGRAM, "/usr/lib/node_modules/" NPM_DEFINITIONS,
      "'registry', {\n    default: '" },
    { REGISTRY_NPM, FIRST, READ_PROGRAM, "/usr/local/lib/node_modules/" NPM_DEFINITIONS,
      "'registry', {\n    default: '" },
    { REGISTRY_NPM, FIRST, READ_PROGRAM, "/usr/share/nodejs/@npmcli/config/lib/definitions/definitions.js",
      "'registry', {\n    default: '" },
    { REGISTRY_NPM, FIRST, READ_PROGRAM, "/usr/share/nodejs/npm/lib/utils/config/definitions.js",
      "'registry', {\n  default: '" },
    { REGISTRY_NPM, FIRST, READ_PROGRAM, "~/.nvm/versions/node/*/lib/node_modules/" NPM_DEFINITIONS,
      "'registry', {\n    default: '" },

    { REGISTRY_PIP, FIRST, READ_EQUALS, "$PIP_INDEX_URL", "" },
    { REGISTRY_PIP, FIRST, READ_EQUALS, "$UV_DEFAULT_INDEX", "" },
    { REGISTRY_PIP, FIRST, READ_EQUALS, "$UV_INDEX_URL", "" },
    { REGISTRY_PIP, FIRST, READ_EQUALS, "~/.config/pip/pip.conf", "global.index-url" },
    { REGISTRY_PIP, FIRST, READ_EQUALS, "~/.pip/pip.conf", "global.index-url" },
    { REGISTRY_PIP, FIRST, READ_EQUALS, "/etc/pip.conf", "global.index-url" },
    { REGISTRY_PIP, FIRST, READ_EQUALS, "/etc/xdg/pip/pip.conf", "global.index-url" },
    { REGISTRY_PIP, EXTRA, READ_EQUALS, "$PIP_EXTRA_INDEX_URL", "" },
    { REGISTRY_PIP, EXTRA, READ_EQUALS, "~/.config/pip/pip.conf", "global.extra-index-url" },
    { REGISTRY_PIP, EXTRA, READ_EQUALS, "~/.pip/pip.conf", "global.extra-index-url" },
    { REGISTRY_PIP, EXTRA, READ_EQUALS, "/etc/pip.conf", "global.extra-index-url" },
    { REGISTRY_PIP, EXTRA, READ_EQUALS, "/etc/xdg/pip/pip.conf", "global.extra-index-url" },
#define PIP_INDEX "pip/_internal/models/index.py"
    { REGISTRY_PIP, FIRST, READ_PROGRAM, "/usr/lib/python3/dist-packages/" PIP_INDEX,
      "\nPyPI = PackageIndex(\"" },
    { REGISTRY_PIP, FIRST, READ_PROGRAM, "/usr/lib/python3*/site-packages/" PIP_INDEX,
      "\nPyPI = PackageIndex(\"" },
    { REGISTRY_PIP, FIRST, READ_PROGRAM, "/usr/local/lib/python3*/*-packages/" PIP_INDEX,
      "\nPyPI = PackageIndex(\"" },
    { REGISTRY_PIP, FIRST, READ_PROGRAM, "~/.local/lib/python3*/site-packages/" PIP_INDEX,
      "\nPyPI = PackageIndex(\"" },
    { REGISTRY_PIP, FIRST, READ_PROGRAM, "~/.pyenv/versions/3*/lib/python3*/site-packages/" PIP_INDEX,
      "\nPyPI = PackageIndex(\"" },

    { REGISTRY_CARGO, FIRST, READ_EQUALS, "~/.cargo/config.toml", "source.*.registry" },
    { REGISTRY_CARGO, FIRST, READ_EQUALS, "~/.cargo/config", "source.*.registry" },
    { REGISTRY_CARGO, EXTRA, READ_EQUALS, "~/.cargo/config.toml", "registries.*.index" },
    { REGISTRY_CARGO, EXTRA, READ_EQUALS, "~/.cargo/config", "registries.*.index" },
    { REGISTRY_CARGO, FIRST, READ_PROGRAM, "/usr/bin/cargo", "sparse+" },
    { REGISTRY_CARGO, FIRST, READ_PROGRAM, "/usr/local/bin/cargo", "sparse+" },
    { REGISTRY_CARGO, FIRST, READ_PROGRAM, "~/.rustup/toolchains/*/bin/cargo", "sparse+" },

    { REGISTRY_GO, FIRST, READ_EQUALS, "$GOPROXY", "" },
    { REGISTRY_GO, FIRST, READ_EQUALS, "~/.config/go/env", "goproxy" },
    { REGISTRY_GO, FIRST, READ_EQUALS, "/usr/local/go/go.env", "goproxy" },
    { REGISTRY_GO, FIRST, READ_EQUALS, "/usr/lib/go*/go.env", "goproxy" },
    { REGISTRY_GO, FIRST, READ_EQUALS, "/usr/share/go*/go.env", "goproxy" },
    { REGISTRY_GO, EXTRA, READ_EQUALS, "$GOSUMDB", "" },
    { REGISTRY_GO, EXTRA, READ_EQUALS, "~/.config/go/env", "gosumdb" },
    { REGISTRY_GO, EXTRA, READ_EQUALS, "/usr/local/go/go.env", "gosumdb" },
    { REGISTRY_GO, EXTRA, READ_EQUALS, "/usr/lib/go*/go.env", "gosumdb" },
    { REGISTRY_GO, EXTRA, READ_EQUALS, "/usr/share/go*/go.env", "gosumdb" },

    { REGISTRY_APT, EXTRA, READ_DEB, "/etc/apt/sources.list", "deb" },
    { REGISTRY_APT, EXTRA, READ_DEB, "/etc/apt/sources.list.d/*.list", "deb" },
    { REGISTRY_APT, EXTRA, READ_COLON, "/etc/apt/sources.list.d/*.sources", "uris" },
};

/* By which a tool inside is told what is configured outside, since it sees none of those files: they have
 * passwords in them.  cargo's own file is seen (box/toolroots.c). */
static const struct teller {
    enum registry registry;
    enum weight weight;
    const char *variable, *between;
} tellers[] = {
    { REGISTRY_NPM, FIRST, "npm_config_registry", " " },
    { REGISTRY_PIP, FIRST, "PIP_INDEX_URL", " " },
    { REGISTRY_PIP, FIRST, "UV_DEFAULT_INDEX", " " },
    { REGISTRY_PIP, EXTRA, "PIP_EXTRA_INDEX_URL", " " },
    { REGISTRY_GO, FIRST, "GOPROXY", "," },
    { REGISTRY_GO, EXTRA, "GOSUMDB", " " },
};

/* All that one registries_read() works on. */
struct finding {
    const struct registry_places *places;
    enum registry_source from;
    struct rule_list *out;
    struct strings *variables, *notes;
    struct strings said; /* words of the source that is being read, without secrets */
    const struct source *source;
    const char *shown; /* the file or variable that is being read */
    size_t first;      /* rules before it are not of registries */
    size_t found;      /* rules of this registry */
    bool replaced;     /* cargo: the public registry is not used */
    bool hastily;      /* no large program is looked through */
    bool along;        /* a program is only asked what belongs to a host that was named before */
    char *index;       /* where files that are found now are told of; NULL: nowhere that we can ask */
};

/* A host that was found */

/* Twice for two registries at one host, if both say what their files' hashes are. */
static bool is_known(const struct finding *finding, const char *host, uint16_t port)
{
    for (size_t i = finding->first; i < finding->out->len; i++) {
        const struct rule *rule = &finding->out->items[i];

        if (strcmp(rule->host, host) == 0 && rule->port == port &&
            (!finding->index || (rule->index && strcmp(rule->index, finding->index) == 0)))
            return true;
    }
    return false;
}

static void add_rule(struct finding *finding, const char *host, uint16_t port, const char *address)
{
    if (is_known(finding, host, port)) {
        finding->found++;
        return;
    }
    if (finding->found == HOSTS_MAX)
        return;
    finding->found++;

    autotext struct text place = TEXT_NONE;

    text_addf(&place, "registry %s of ", registry_names[finding->source->registry]);
    text_add_inert(&place, finding->shown);
    *array_add(finding->out) = (struct rule){
        .host = text_copy(host),
        .port = port,
        /* What is public for everybody stays so. */
        .inside = finding->source->reader != READ_PROGRAM || finding->along,
        .address = address ? text_copy(address) : NULL,
        .registry = finding->source->registry,
        .index = finding->index ? text_copy(finding->index) : NULL,
        .place = text_steal(&place),
    };
}

static void note(struct finding *finding, const char *word, const char *why)
{
    autotext struct text text = TEXT_NONE;

    text_addf(&text, "registry %s: ", registry_names[finding->source->registry]);
    text_add_inert(&text, finding->shown);
    text_add(&text, ": ");
    text_add_inert(&text, word);
    text_addf(&text, " %s", why);
    strings_take(finding->notes, text_steal(&text));
}

/* What a tool inside may know of it: no user, no password, no query. */
static void say_url(struct finding *finding, const struct url *url)
{
    autotext struct text said = TEXT_NONE;

    text_addf(&said, url->host.address.len == 16 ? "%s://[%s]" : "%s://%s", url->tls ? "https" : "http",
              url->host.text);
    if (url->port != (url->tls ? 443 : 80))
        text_addf(&said, ":%u", url->port);
    text_add_bytes(&said, url->path, strcspn(url->path, "?#"));
    if (finding->source->registry == REGISTRY_PIP && !url->tls) /* else pip passes it over */
        strings_take(finding->variables, text_format("PIP_TRUSTED_HOST=%s:%u", url->host.text, url->port));
    strings_take(&finding->said, text_steal(&said));
}

/* Where a registry with that address is asked about its files: never without TLS, since whoever answers decides
 * what is installed.  apt and go have no hashes that are simple to come by (decision 41), nor has an index that
 * is a git repository. */
static char *find_index(const struct source *source, const char *word, const struct url *url)
{
    bool program = source->reader == READ_PROGRAM, sparse = program || text_starts(word, "sparse+");
    const char *path = program && source->registry == REGISTRY_PIP ? "/simple/" : url->path;
    size_t len = strcspn(path, "?#");
    bool asks = source->registry == REGISTRY_NPM || source->registry == REGISTRY_PIP ||
                (source->registry == REGISTRY_CARGO && sparse);

    if (!asks || !url->tls || len != strlen(path) || hostname_is_address(&url->host))
        return NULL;
    return text_format("https://%s:%u%s%s", url->host.text, url->port, path, path[len - 1] == '/' ? "" : "/");
}

static void add_url(struct finding *finding, const char *word)
{
    struct url url;
    const char *why = url_read(word, &url);
    bool local = !why && hostname_is_local(&url.host);

    if (why) {
        note(finding, "an address", why); /* not the word: it may hold a password */
        return;
    }
    if (local && strcmp(url.host.text, "localhost") != 0) {
        note(finding, url.host.text, "means another machine everywhere; allow it with its address");
        return;
    }
    free(finding->index);
    finding->index = find_index(finding->source, word, &url);
    add_rule(finding, url.host.text, url.port, local ? "127.0.0.1" : NULL);
    if (!local)
        say_url(finding, &url);
}

/* off, direct, "sum.example.com", "sum.example.com+key", or one with an address behind it */
static void add_sum(struct finding *finding, const char *word)
{
    struct hostname host;

    if (strstr(word, "://"))
        add_url(finding, word);
    else if (strchr(word, '.') && !hostname_read(word, strcspn(word, "+"), &host) && !hostname_is_local(&host))
        add_rule(finding, host.text, 443, NULL);
}

/* What go may be told that is no address: its own two words, and the name of a database with its public key.
 * Anything else may be a piece of a password, in which a quote stood. */
static bool is_word_of_go(const struct finding *finding, const char *word)
{
    struct hostname host;

    if (strcmp(word, "direct") == 0 || strcmp(word, "off") == 0)
        return true;
    return finding->source->weight == EXTRA && strchr(word, '.') &&
           !hostname_read(word, strcspn(word, "+"), &host);
}

static void take_word(struct finding *finding, const char *word)
{
    if (finding->source->registry == REGISTRY_GO && is_word_of_go(finding, word))
        strings_add(&finding->said, word);
    if (finding->source->registry == REGISTRY_GO && finding->source->weight == EXTRA)
        add_sum(finding, word);
    else if (strstr(word, "://") && !text_starts(word, "file:") && !text_starts(word, "cdrom:"))
        add_url(finding, word);
}

/* Whether a key of a file is the one that the row means; a star stands for one name in between. */
static bool is_key(const struct source *source, const char *key)
{
    const char *star = strchr(source->key, '*');
    size_t before = star ? (size_t)(star - source->key) : 0;

    if (source->reader == READ_SCOPES)
        return key[0] == '@' && text_ends(key, source->key);
    if (!star)
        return strcmp(key, source->key) == 0;
    return strncmp(key, source->key, before) == 0 && text_ends(key, star + 1) &&
           strlen(key) > before + strlen(star + 1);
}

static void take_setting(void *owner, const char *key, const char *value)
{
    struct finding *finding = owner;

    if (strcmp(key, "source.crates-io.replace-with") == 0)
        finding->replaced = true;
    if (is_key(finding->source, key))
        take_word(finding, value);
}

/* Programs */

/* Whether a file or variable has named the host that a program has of itself. */
static bool was_named(const struct finding *finding, const struct url *url)
{
    for (size_t i = finding->first; i < finding->out->len; i++)
        if (finding->out->items[i].inside && finding->out->items[i].port == url->port &&
            strcmp(finding->out->items[i].host, url->host.text) == 0)
            return true;
    return false;
}

/* The address that begins at `at`: up to where its host ends, since strings of a program may stand close. */
static bool take_address(struct finding *finding, const char *at, const char *end, struct url *url)
{
    enum { ADDRESS_MAX = 300 };
    size_t len = 0;
    const char *host = memmem(at, (size_t)(end - at) < 16 ? (size_t)(end - at) : 16, "://", 3);

    if (!host)
        return false;
    len = (size_t)(host + 3 - at);
    while (at + len < end && len < ADDRESS_MAX && at[len] && !strchr("/\"' \n", at[len]))
        len++;

    autofree char *word = text_format("%.*s", (int)len, at);

    /* A program also has pieces of addresses in it. */
    if (at + len == end || at[len] != '/' || url_read(word, url) || hostname_is_local(&url->host))
        return false;
    if (!finding->along)
        add_url(finding, word);
    return !finding->along || was_named(finding, url);
}

/* pip: file_storage_domain="..." behind the index. */
static void take_files_domain(struct finding *finding, const char *at, const char *end)
{
    static const char name[] = "file_storage_domain=\"";
    const char *domain = memmem(at, (size_t)(end - at) < 200 ? (size_t)(end - at) : 200, name, sizeof name - 1);
    struct hostname host;
    size_t len = 0;

    if (!domain)
        return;
    domain += sizeof name - 1;
    while (domain + len < end && domain[len] != '"')
        len++;
    if (!hostname_read(domain, len, &host) && !hostname_is_local(&host))
        add_rule(finding, host.text, 443, NULL);
}

/* cargo: where packages lie is in the index, at a name beside the index's own. */
static void take_siblings(struct finding *finding, const struct url *index)
{
    const char *parent = strchr(index->host.text, '.');

    if (hostname_is_address(&index->host) || !parent)
        return;

    autofree char *pattern = text_format("*%s", parent);

    if (!hostname_pattern_is_broad(pattern))
        add_rule(finding, pattern, index->port, NULL);
}

static void take_program(struct finding *finding, const char *bytes, size_t len)
{
    const struct source *source = finding->source;
    size_t key = strlen(source->key);
    const char *at = memmem(bytes, len, source->key, key), *end = bytes + len;
    struct url url;

    while (at && !take_address(finding, at + key, end, &url))
        at = memmem(at + 1, (size_t)(end - at - 1), source->key, key);
    if (!at)
        return;
    finding->along = was_named(finding, &url);
    if (source->registry == REGISTRY_PIP)
        take_files_domain(finding, at + key, end);
    if (source->registry == REGISTRY_CARGO)
        take_siblings(finding, &url);
}

/* Files */

/* Who can have written it: root, or the user unless only root counts; and it is no part of the workspace,
 * whatever links lead to it. */
static bool is_trusted(const struct finding *finding, int fd, const struct stat *status)
{
    const struct registry_places *places = finding->places;
    autofree char *link = text_format("/proc/self/fd/%d", fd), *real = realpath(link, NULL);
    uid_t system = *places->root ? places->uid : 0; /* a test has no file of root's */
    bool theirs = status->st_uid == system && !(status->st_mode & 022);

    if (!real || (places->workspace && path_within(real, places->workspace)))
        return false;
    if (finding->from == REGISTRIES_OF_SYSTEM)
        return theirs && finding->source->path[0] == '/';
    return (status->st_uid == places->uid || status->st_uid == 0) && !(status->st_mode & 002);
}

static void take_bytes(struct finding *finding, const char *bytes, size_t len)
{
    static const enum settings_form forms[] = { [READ_EQUALS] = SETTINGS_EQUALS,
                                                [READ_COLON] = SETTINGS_COLON,
                                                [READ_DEB] = SETTINGS_DEB,
                                                [READ_SCOPES] = SETTINGS_EQUALS };

    if (finding->source->reader == READ_PROGRAM)
        take_program(finding, bytes, len);
    else
        settings_read(bytes, len, forms[finding->source->reader], take_setting, finding);
}

static void take_file(struct finding *finding, const char *path)
{
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    size_t most = finding->source->reader == READ_PROGRAM ? PROGRAM_MAX : FILE_MAX;
    struct stat status;

    if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) || status.st_size == 0 ||
        (size_t)status.st_size > most)
        return;
    finding->shown = path + strlen(finding->places->root);
    if (!is_trusted(finding, fd, &status)) {
        note(finding, "the file", "is not read: it is in the workspace, or somebody else can write it");
        return;
    }

    size_t len = (size_t)status.st_size;
    void *bytes = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);

    if (bytes == MAP_FAILED)
        return;
    take_bytes(finding, bytes, len);
    munmap(bytes, len);
}

static void take_files(struct finding *finding)
{
    const struct registry_places *places = finding->places;
    const char *path = finding->source->path;
    bool home = path[0] == '~', one = finding->source->reader == READ_PROGRAM;
    size_t before = finding->found;
    glob_t found;

    if (home && (finding->from == REGISTRIES_OF_SYSTEM || !places->home))
        return;

    autofree char *pattern =
        home ? text_format("%s%s", places->home, path + 1) : text_format("%s%s", places->root, path);

    if (glob(pattern, 0, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc && !(one && finding->found > before); i++)
            take_file(finding, found.gl_pathv[i]);
    globfree(&found);
}

static void take_variable(struct finding *finding, const char *name)
{
    size_t len = strlen(name);

    if (finding->from == REGISTRIES_OF_SYSTEM || !finding->places->environ)
        return;
    for (char **at = finding->places->environ; *at; at++) {
        if (strncmp(*at, name, len) != 0 || (*at)[len] != '=')
            continue;

        autofree char *line = text_format("value=%s", *at + len + 1);
        const struct source *source = finding->source;
        const struct source as_file = { source->registry, source->weight, READ_EQUALS, source->path, "value" };

        finding->shown = name;
        finding->source = &as_file;
        settings_read(line, strlen(line), SETTINGS_EQUALS, take_setting, finding);
        finding->source = source;
        return;
    }
}

static bool has_variable(const struct strings *variables, const char *name)
{
    for (size_t i = 0; i < variables->len; i++)
        if (strncmp(variables->items[i], name, strlen(name)) == 0 && variables->items[i][strlen(name)] == '=')
            return true;
    return false;
}

/* What the installation has of itself is seen inside anyhow. */
static void tell_inside(struct finding *finding)
{
    const struct source *source = finding->source;

    for (size_t i = 0; i < ARRAY_LEN(tellers) && finding->said.len; i++) {
        autotext struct text value = TEXT_NONE;

        if (tellers[i].registry != source->registry || tellers[i].weight != source->weight ||
            source->reader == READ_PROGRAM || text_starts(source->path, "/usr/") ||
            has_variable(finding->variables, tellers[i].variable))
            continue;
        for (size_t k = 0; k < finding->said.len; k++)
            text_addf(&value, "%s%s", k ? tellers[i].between : "", finding->said.items[k]);
        strings_take(finding->variables, text_format("%s=%s", tellers[i].variable, text_string(&value)));
    }
}

static void take_source(struct finding *finding, const struct source *source)
{
    finding->source = source;
    if (source->path[0] == '$')
        take_variable(finding, source->path + 1);
    else
        take_files(finding);
    tell_inside(finding);
    strings_free(&finding->said);
}

static void find_registry(struct finding *finding, enum registry registry)
{
    size_t first = 0;

    finding->found = 0;
    finding->replaced = false;
    for (size_t i = 0; i < ARRAY_LEN(sources); i++) {
        size_t before = finding->found;

        finding->along = sources[i].weight == FIRST && first;
        if (finding->hastily && registry == REGISTRY_CARGO && sources[i].reader == READ_PROGRAM)
            continue;
        if (sources[i].registry != registry || (finding->along && sources[i].reader != READ_PROGRAM))
            continue;
        take_source(finding, &sources[i]);
        if (sources[i].weight == FIRST &&
            (registry != REGISTRY_CARGO || finding->replaced || sources[i].reader == READ_PROGRAM))
            first += finding->found - before;
    }
    free(steal_ptr(&finding->index));
    if (finding->found == 0)
        strings_take(finding->notes, text_format("no host is known for the registry %s: name it with --allow",
                                                 registry_names[registry]));
}

void registries_read(const struct strings *registries, enum registry_source source,
                     const struct registry_places *places, struct rule_list *out, struct strings *variables,
                     struct strings *notes)
{
    struct finding finding = {
        .places = places, .from = source, .out = out, .variables = variables, .notes = notes, .first = out->len
    };

    for (size_t i = 0; i < REGISTRY_COUNT; i++)
        if (strings_have(registries, registry_names[i]))
            find_registry(&finding, (enum registry)i);
}

void registries_hints(const struct registry_places *places, struct rule_list *out)
{
    autostrings struct strings variables = STRINGS_NONE, notes = STRINGS_NONE;
    struct finding finding = { .places = places,
                               .from = REGISTRIES_OF_USER,
                               .out = out,
                               .variables = &variables,
                               .notes = &notes,
                               .hastily = true };

    for (size_t i = 0; i < REGISTRY_COUNT; i++) {
        finding.first = out->len;
        find_registry(&finding, (enum registry)i);
        for (size_t k = finding.first; k < out->len; k++) {
            free(out->items[k].place);
            out->items[k].place = text_copy(registry_names[i]);
        }
    }
}

/* Both addresses of the host's loopback: which of them a service listens on is its own affair. */
static void add_host_services(const struct strings *services, struct rule_list *out)
{
    static const char *const loopback[] = { "127.0.0.1", "::1" };

    for (size_t i = 0; i < services->len * ARRAY_LEN(loopback); i++)
        *array_add(out) =
            (struct rule){ .host = text_copy(loopback[i % ARRAY_LEN(loopback)]),
                           .port = (uint16_t)strtoul(services->items[i / ARRAY_LEN(loopback)], NULL, 10),
                           .place = text_copy("network.host-services") };
}

const char *rules_of_spec(const struct spec *spec, const struct registry_places *places, struct rules *out,
                          struct strings *notes)
{
    rules_init(out, spec->network, &spec->rules);
    out->budget =
        (struct amounts){ spec->budget.bytes.max, spec->budget.requests.max, spec->budget.connections.max };
    if (spec->packages)
        out->packages = spec->packages_size.max ? spec->packages_size.max : UINT64_MAX;
    add_host_services(&spec->host_services, &out->list);
    registries_read(&spec->registries, spec->registries_from, places, &out->list, &out->variables, notes);
    return proxy_read(spec->upstream_proxy, places->environ, &out->proxy);
}
