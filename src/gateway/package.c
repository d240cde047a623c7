#include "gateway/package.h"

#include "base/own.h"
#include "base/text.h"

#include <jansson.h>
#include <string.h>
#include <strings.h>

void package_free(struct package *package)
{
    text_free(&package->asked);
    text_free(&package->host);
    text_free(&package->path);
    text_free(&package->name);
    text_free(&package->version);
    *package = PACKAGE_NONE;
}

/* In no language but the paths'. */
static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

static bool is_word(char byte)
{
    return is_digit(byte) || (text_small(byte) >= 'a' && text_small(byte) <= 'z');
}

/* --- paths --- */

/* One that everybody reads alike, and that stands in a request as it is. */
static bool is_plain(const char *path)
{
    for (const char *at = path; *at; at++) {
        if (!is_word(*at) && !strchr("-._~@%/+!", *at))
            return false;
        if (*at == '/' && (at[1] == '/' || at[1] == '.'))
            return false;
    }
    return path[0] == '/' && strlen(path) < 2048;
}

/* What stands behind the last slash. */
static const char *file_of(const char *path)
{
    return strrchr(path, '/') + 1;
}

static bool is_part(const char *at, size_t len)
{
    return len > 0 && at[0] != '.' && !memchr(at, '/', len);
}

/* --- npm: /NAME/-/BASE-VERSION.tgz, where BASE is NAME without its scope; asked is /NAME/VERSION --- */

static bool recognise_npm(struct package *out)
{
    static const char mark[] = "/-/", end[] = ".tgz";
    size_t prefix = strlen(out->index.path);
    const char *path = text_string(&out->path), *name = path + prefix, *at, *base;

    if (strncmp(path, out->index.path, prefix) != 0 || !(at = strstr(name, mark)))
        return false;
    const char *file = at + strlen(mark);
    size_t name_len = (size_t)(at - name), file_len = strlen(file);

    base = memrchr(name, '/', name_len);
    base = base ? base + 1 : name;
    size_t base_len = (size_t)(at - base);

    if (name_len == 0 || file_len <= base_len + 1 + strlen(end) || strncmp(file, base, base_len) != 0 ||
        file[base_len] != '-' || !text_ends(file, end) || !is_part(file, file_len) ||
        (base != name && (name[0] != '@' || memchr(name, '/', name_len) != base - 1)))
        return false;
    text_add_bytes(&out->name, name, name_len);
    text_add_bytes(&out->version, file + base_len + 1, file_len - base_len - 1 - strlen(end));
    text_addf(&out->asked, "%s%s/%s", out->index.path, text_string(&out->name), text_string(&out->version));
    out->accept = "application/json";
    return true;
}

/* A tree takes many times the memory of its text. */
static json_t *read_json(const char *bytes, size_t len)
{
    enum { JSON_MAX = 1 << 20 };

    return len > JSON_MAX ? NULL : json_loadb(bytes, len, JSON_REJECT_DUPLICATES, NULL);
}

static const char *member(const json_t *map, const char *key)
{
    const char *value = json_string_value(json_object_get(map, key));

    return value ? value : "";
}

/* The first SHA-512 of "sha1-... sha512-...": others are weak, or nobody's. */
static bool read_integrity(const char *value, struct checksum *out)
{
    static const char kind[] = "sha512-";

    for (const char *at = value; *at; at += strcspn(at, " "), at += strspn(at, " "))
        if (text_starts(at, kind))
            return checksum_read_base64(CHECKSUM_SHA512, at + strlen(kind), strcspn(at + strlen(kind), " ?"),
                                        out);
    return false;
}

/* The host of `tarball` does not count: mirrors repeat that of whom they have it from, and clients do not
 * follow it then. */
static bool read_npm(const struct package *package, const char *bytes, size_t len, struct checksum *out)
{
    json_t *root = read_json(bytes, len);
    const json_t *dist = json_object_get(root, "dist");
    autofree char *end = text_format("/%s", text_string(&package->path) + strlen(package->index.path));
    bool good = strcmp(member(root, "name"), text_string(&package->name)) == 0 &&
                strcmp(member(root, "version"), text_string(&package->version)) == 0 &&
                text_ends(member(dist, "tarball"), end) && read_integrity(member(dist, "integrity"), out);

    json_decref(root);
    return good;
}

/* --- pip: any path that ends as files do; asked is the page of the project, in its oldest form --- */

static bool add_project(const char *file, size_t len, struct text *out)
{
    bool before = false;

    for (size_t i = 0; i < len; i++) {
        bool mark = strchr("-_.", file[i]) != NULL;

        if (!mark && !is_word(file[i]))
            return false;
        if (!mark || !before)
            text_addf(out, "%c", mark ? '-' : text_small(file[i]));
        before = mark;
    }
    return len > 0;
}

/* Up to its version; 0: it has none. */
static size_t project_len(const char *file)
{
    static const char *const ends[] = { ".tar.gz", ".zip", ".tar.bz2" };
    size_t found = 0;

    if (text_ends(file, ".whl"))
        return strcspn(file, "-");
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (text_ends(file, ends[i]))
            for (const char *at = file; (at = strchr(at, '-')); at++)
                found = is_digit(at[1]) ? (size_t)(at - file) : found;
    return found;
}

static bool recognise_pip(struct package *out)
{
    const char *file = file_of(text_string(&out->path));

    text_add(&out->asked, out->index.path);
    if (!add_project(file, project_len(file), &out->asked))
        return false;
    text_add(&out->asked, "/");
    out->accept = "text/html";
    return true;
}

/* Where a link leads that is found in the page, as far as it is at the page's own host. */
static bool resolve(const char *page, const char *link, size_t len, struct text *out)
{
    size_t base = (size_t)(file_of(page) - page);

    if (len && link[0] == '/') {
        text_add_bytes(out, link, len);
        return len > 1 && link[1] != '/';
    }
    for (; len >= 3 && strncmp(link, "../", 3) == 0; link += 3, len -= 3)
        for (base -= base > 1; base > 1 && page[base - 1] != '/';)
            base--;
    text_add_bytes(out, page, base);
    text_add_bytes(out, link, len);
    return true;
}

static bool leads_to_file(const struct package *package, const char *link, size_t len)
{
    autofree char *copy = text_format("%.*s", (int)len, link);
    autotext struct text path = TEXT_NONE;
    struct url url = package->index;

    if (strstr(copy, "://")) {
        if (url_read(copy, &url) || !url.tls)
            return false;
        text_add(&path, url.path);
    } else if (!resolve(text_string(&package->asked), copy, strlen(copy), &path)) {
        return false;
    }
    return strcmp(text_string(&path), text_string(&package->path)) == 0 && url.port == package->port &&
           strcmp(url.host.text, text_string(&package->host)) == 0;
}

/* href="URL#sha256=..." of any element: nothing else in a page has that form.  The first that leads to the file
 * counts. */
static bool read_pip(const struct package *package, const char *bytes, size_t len, struct checksum *out)
{
    static const char name[] = "href=", sum[] = "#sha256=";
    const char *at = bytes, *end = bytes + len;

    while ((at = memmem(at, (size_t)(end - at), name, strlen(name)))) {
        at += strlen(name);
        const char *close =
            at < end && (*at == '"' || *at == '\'') ? memchr(at + 1, *at, (size_t)(end - at - 1)) : NULL;

        if (!close)
            continue;
        const char *link = at + 1, *mark = memmem(link, (size_t)(close - link), sum, strlen(sum));

        at = close;
        if (mark && mark - link < 4096 && leads_to_file(package, link, (size_t)(mark - link)))
            return checksum_read_hex(CHECKSUM_SHA256, mark + strlen(sum), (size_t)(close - mark) - strlen(sum),
                                     out);
    }
    return false;
}

/* --- cargo: .../NAME/VERSION/download or .../NAME/NAME-VERSION.crate; asked is the crate's file of the index
 * --- */

static bool take_parts(const char *path, struct package *out)
{
    static const char get[] = "/download", end[] = ".crate";
    bool short_form = text_ends(path, get);

    if (!short_form && !text_ends(path, end))
        return false;
    size_t len = strlen(path) - (short_form ? strlen(get) : strlen(end));
    const char *version = memrchr(path, '/', len), *name;

    if (!version)
        return false;
    name = memrchr(path, '/', (size_t)(version - path));
    if (!name)
        return false;
    size_t name_len = (size_t)(version - ++name), skip = short_form ? 0 : name_len + 1;

    version++;
    if (!is_part(name, name_len) || path + len <= version + skip ||
        (skip && (strncmp(version, name, name_len) != 0 || version[name_len] != '-')))
        return false;
    text_add_bytes(&out->name, name, name_len);
    text_add_bytes(&out->version, version + skip, (size_t)(path + len - version) - skip);
    return true;
}

/* In small letters; false: no crate has that name. */
static bool take_name(const struct text *name, char *out, size_t size)
{
    if (name->len >= size)
        return false;
    for (size_t i = 0; i < name->len; i++) {
        if (!is_word(name->data[i]) && name->data[i] != '-' && name->data[i] != '_')
            return false;
        out[i] = text_small(name->data[i]);
    }
    out[name->len] = '\0';
    return true;
}

static bool recognise_cargo(struct package *out)
{
    char name[65];

    if (!take_parts(text_string(&out->path), out) || !take_name(&out->name, name, sizeof name))
        return false;
    text_add(&out->asked, out->index.path);
    if (out->name.len <= 2)
        text_addf(&out->asked, "%zu/%s", out->name.len, name);
    else if (out->name.len == 3)
        text_addf(&out->asked, "3/%c/%s", name[0], name);
    else
        text_addf(&out->asked, "%.2s/%.2s/%s", name, name + 2, name);
    out->accept = "text/plain";
    return true;
}

static bool read_line(const struct package *package, const char *bytes, size_t len, struct checksum *out)
{
    json_t *root = read_json(bytes, len);
    const char *sum = member(root, "cksum");
    bool good = strcasecmp(member(root, "name"), text_string(&package->name)) == 0 &&
                strcmp(member(root, "vers"), text_string(&package->version)) == 0 &&
                checksum_read_hex(CHECKSUM_SHA256, sum, strlen(sum), out);

    json_decref(root);
    return good;
}

/* A line for each version.  Only those that have the words are read. */
static bool read_cargo(const struct package *package, const char *bytes, size_t len, struct checksum *out)
{
    autofree char *version = text_format("\"%s\"", text_string(&package->version));
    const char *end = bytes + len;

    for (const char *at = bytes, *next; at < end; at = next) {
        const char *line = memchr(at, '\n', (size_t)(end - at));

        next = line ? line + 1 : end;
        if (memmem(at, (size_t)(next - at), version, strlen(version)) &&
            read_line(package, at, (size_t)(next - at), out))
            return true;
    }
    return false;
}

/* --- all of them: one that knows another ecosystem adds a row --- */

static const struct ecosystem {
    bool (*recognise)(struct package *out);
    bool (*read)(const struct package *package, const char *bytes, size_t len, struct checksum *out);
} ecosystems[REGISTRY_COUNT] = {
    [REGISTRY_NPM] = { recognise_npm, read_npm },
    [REGISTRY_PIP] = { recognise_pip, read_pip },
    [REGISTRY_CARGO] = { recognise_cargo, read_cargo },
};

bool package_recognise(const struct rule *rule, const char *host, uint16_t port, const char *path,
                       struct package *out)
{
    const struct ecosystem *ecosystem = &ecosystems[rule->registry];

    *out = (struct package){ .registry = rule->registry, .port = port };
    if (!rule->index || !ecosystem->recognise || !is_plain(path) || url_read(rule->index, &out->index) ||
        !is_plain(out->index.path))
        return false;
    text_add(&out->host, host);
    text_add(&out->path, path);
    if (ecosystem->recognise(out))
        return true;
    package_free(out);
    return false;
}

bool package_read(const struct package *package, const char *bytes, size_t len, struct checksum *out)
{
    return len <= PACKAGE_ANSWER_MAX && ecosystems[package->registry].read(package, bytes, len, out);
}
