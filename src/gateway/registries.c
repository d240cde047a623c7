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

/* All that one registries_read() works on. */
struct finding {
    const struct registry_places *places;
    enum registry_source from;
    struct rule_list *out;
    struct strings *notes;
    const struct source *source;
    const char *shown; /* the file or variable that is being read */
    size_t first;      /* rules before it are not of registries */
    size_t found;      /* rules of this registry */
    bool replaced;     /* cargo: the public registry is not used */
};

/* A host that was found */

static void add_rule(struct finding *finding, const char *host, uint16_t port, const char *address)
{
    for (size_t i = finding->first; i < finding->out->len; i++)
        if (strcmp(finding->out->items[i].host, host) == 0 && finding->out->items[i].port == port) {
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
        .inside = finding->source->reader != READ_PROGRAM, /* what is public for everybody stays so */
        .address = address ? text_copy(address) : NULL,
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
    add_rule(finding, url.host.text, url.port, local ? "127.0.0.1" : NULL);
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

static void take_word(struct finding *finding, const char *word)
{
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
    add_url(finding, word);
    return true;
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

static void find_registry(struct finding *finding, enum registry registry)
{
    size_t first = 0;

    finding->found = 0;
    finding->replaced = false;
    for (size_t i = 0; i < ARRAY_LEN(sources); i++) {
        size_t before = finding->found;

        if (sources[i].registry != registry || (sources[i].weight == FIRST && first))
            continue;
        finding->source = &sources[i];
        if (sources[i].path[0] == '$')
            take_variable(finding, sources[i].path + 1);
        else
            take_files(finding);
        if (sources[i].weight == FIRST &&
            (registry != REGISTRY_CARGO || finding->replaced || sources[i].reader == READ_PROGRAM))
            first += finding->found - before;
    }
    if (finding->found == 0)
        strings_take(finding->notes, text_format("no host is known for the registry %s: name it with --allow",
                                                 registry_names[registry]));
}

void registries_read(const struct strings *registries, enum registry_source source,
                     const struct registry_places *places, struct rule_list *out, struct strings *notes)
{
    struct finding finding = {
        .places = places, .from = source, .out = out, .notes = notes, .first = out->len
    };

    for (size_t i = 0; i < REGISTRY_COUNT; i++)
        if (strings_have(registries, registry_names[i]))
            find_registry(&finding, (enum registry)i);
}

void rules_of_spec(const struct spec *spec, const struct registry_places *places, struct rules *out,
                   struct strings *notes)
{
    rules_init(out, spec->network, &spec->rules);
    registries_read(&spec->registries, spec->registries_from, places, &out->list, notes);
}
