/* Line by line, and only as deeply as needed to know to which key a line belongs.  Where a format
 * allows several spellings, each that is not understood counts as one that runs.  A carriage return
 * ends a line in all formats: in some of them it does, and a line too many hides nothing. */

#include "changes/runpart.h"

#include "base/glob.h"
#include "base/text.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { NAME_MAX_LEN = 256 };

struct span {
    const char *at;
    size_t len;
};

static void say(char *part, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Parts of the file are in it, and the file is hostile. */
static void say(char *part, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    vsnprintf(part, CLASSIFY_PART_MAX, format, list);
    va_end(list);
    for (; *part; part++)
        if (*part < ' ' || *part > '~')
            *part = '?';
}

/* Only a regular file has text: a link's target is none, and a file that is not there has none. */
static struct span text_of(const struct classify_side *side)
{
    return S_ISREG(side->mode) && side->bytes ? (struct span){ side->bytes, side->len }
                                              : (struct span){ "", 0 };
}

static bool is_cut(const struct classify_side *side)
{
    return side->mode && (side->cut || !side->bytes);
}

static bool unreadable(const struct classify_input *in, char *part)
{
    if (!is_cut(&in->old) && !is_cut(&in->new))
        return false;
    say(part, "too large to look into");
    return true;
}

/* Takes the first of several words off; false if there is none. */
static bool take_pattern(const char **words, struct span *out)
{
    *words += strspn(*words, " ");
    *out = (struct span){ *words, strcspn(*words, " ") };
    *words += out->len;
    return out->len;
}

/* Whether the patterns leave open that this key runs something. */
static bool runs(const char *key, const char *keys)
{
    struct span pattern;

    while (take_pattern(&keys, &pattern)) {
        bool does = *pattern.at == '!';

        if (glob_match_part(pattern.at + does, pattern.len - does, key, strlen(key)))
            return does;
    }
    return true;
}

/* --- lines ----------------------------------------------------------------------------------- */

/* How the lines of one format are read. */
struct dialect {
    const char *comments;   /* characters that begin one */
    const char *separators; /* that end a key */
    bool sections;          /* `[name]` begins one */
    bool toml, indents, backslashes;
};

/* A walk over the lines of one text. */
struct lines {
    struct span rest, line;
    const struct dialect *dialect;
    char section[NAME_MAX_LEN];
    char key[NAME_MAX_LEN]; /* whole name of the key to which `line` belongs */
    bool has_key;           /* since the last head there was one */
    bool unclear;           /* it is not sure in which section this is */
    bool continues;         /* the next line belongs to the same key */
    size_t indent;          /* INI: of the line with the key; a deeper one belongs to it */
    int depth;              /* TOML: brackets open */
    char quote;             /* TOML: of the string over several lines that is open */
};

/* Moves to the next line that runs something. */
typedef bool next_line(struct lines *lines, const char *keys);

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\f' || byte == '\v';
}

static struct span without(struct span text, size_t count)
{
    return (struct span){ text.at + count, text.len - count };
}

static struct span trimmed(struct span line)
{
    while (line.len && is_blank(line.at[line.len - 1]))
        line.len--;
    while (line.len && is_blank(*line.at))
        line = without(line, 1);
    return line;
}

static bool take_line(struct lines *lines)
{
    size_t len = 0;

    if (!lines->rest.len)
        return false;
    while (len < lines->rest.len && lines->rest.at[len] != '\n' && lines->rest.at[len] != '\r')
        len++;
    lines->line = (struct span){ lines->rest.at, len };
    if (len + 1 < lines->rest.len && memcmp(lines->rest.at + len, "\r\n", 2) == 0)
        len++;
    lines->rest = without(lines->rest, len + (len < lines->rest.len));
    return true;
}

static bool is_same_line(const struct lines *one, const struct lines *other)
{
    return one->line.len == other->line.len && memcmp(one->line.at, other->line.at, one->line.len) == 0 &&
           strcmp(one->key, other->key) == 0 && strcmp(one->section, other->section) == 0;
}

static void say_line(char *part, const struct lines *lines, const char *verb)
{
    if (*lines->key)
        say(part, "%.60s %s", lines->key, verb);
    else
        say(part, "\"%.*s\" %s", lines->line.len < 60 ? (int)lines->line.len : 60, lines->line.at, verb);
}

/* Both are walked together: the texts are alike if their lines that run are, in this order. */
static bool lines_differ(struct lines *old, struct lines *new, next_line *next, const char *keys, char *part)
{
    for (;;) {
        bool before = next(old, keys), after = next(new, keys);

        if (before && after && is_same_line(old, new))
            continue;
        if (after)
            say_line(part, new, "changed");
        else if (before)
            say_line(part, old, "removed");
        return before || after;
    }
}

static bool compare_lines(const struct classify_input *in, const struct dialect *dialect, next_line *next,
                          const char *keys, char *part)
{
    struct lines old = { .rest = text_of(&in->old), .dialect = dialect };
    struct lines new = { .rest = text_of(&in->new), .dialect = dialect };

    return unreadable(in, part) || lines_differ(&old, &new, next, keys, part);
}

/* --- keys and values ------------------------------------------------------------------------- */

/* Adds a name in small letters, without blanks and quotes.  False if it is too long, or has an
 * escape in it, which could stand for anything. */
static bool add_name(char *name, struct span from)
{
    size_t used = strlen(name);

    for (size_t i = 0; i < from.len; i++) {
        char byte = from.at[i];

        if (byte == '\\' || !byte || used + 1 >= NAME_MAX_LEN) {
            name[0] = '\0';
            return false;
        }
        if (!is_blank(byte) && byte != '"' && byte != '\'')
            name[used++] = text_small(byte);
    }
    name[used] = '\0';
    return true;
}

/* The end of the key: the first separator outside of quotes. */
static size_t key_len(struct span line, const char *separators)
{
    char quote = '\0';

    for (size_t i = 0; i < line.len; i++) {
        char byte = line.at[i];

        if (byte == quote)
            quote = '\0';
        else if (quote)
            continue;
        else if (byte == '"' || byte == '\'')
            quote = byte;
        else if (byte && strchr(separators, byte))
            return i;
    }
    return line.len;
}

static size_t skip_string(struct span line, size_t at, struct lines *lines)
{
    char quote = line.at[at];

    if (at + 2 < line.len && line.at[at + 1] == quote && line.at[at + 2] == quote) {
        lines->quote = quote;
        return at + 2;
    }
    for (at++; at < line.len && line.at[at] != quote; at++)
        at += line.at[at] == '\\' && quote == '"';
    return at;
}

/* The end of a string over several lines, or the end of the line. */
static size_t close_string(struct span line, size_t at, struct lines *lines)
{
    for (; at < line.len; at++) {
        if (line.at[at] == '\\' && lines->quote == '"') {
            at++;
        } else if (at + 2 < line.len && line.at[at] == lines->quote && line.at[at + 1] == lines->quote &&
                   line.at[at + 2] == lines->quote) {
            lines->quote = '\0';
            return at + 2;
        }
    }
    return at;
}

/* Follows brackets and strings through a line, so that no line inside of a value is taken for the
 * head of a table. */
static void follow_toml(struct lines *lines)
{
    struct span line = lines->line;

    for (size_t at = 0; at < line.len; at++) {
        char byte = line.at[at];

        if (lines->quote)
            at = close_string(line, at, lines);
        else if (byte == '#')
            break;
        else if (byte == '"' || byte == '\'')
            at = skip_string(line, at, lines);
        else if (byte == '[' || byte == '{')
            lines->depth++;
        else if ((byte == ']' || byte == '}') && lines->depth > 0)
            lines->depth--;
    }
    lines->continues = lines->depth > 0 || lines->quote;
}

/* `[name]`, in TOML also `[[name]]`, alone in its line or with a comment behind it.  False if it is
 * no such line. */
static bool take_header(struct lines *lines, struct span line)
{
    size_t len = key_len(line, "]");

    if (!lines->dialect->sections || *line.at != '[' || len == line.len)
        return false;

    struct span after = without(line, len), name = { line.at, len };
    bool twice =
        lines->dialect->toml && line.len > 1 && line.at[1] == '[' && after.len > 1 && after.at[1] == ']';

    name = without(name, 1 + twice);
    after = trimmed(without(after, 1 + twice));
    if (after.len && (!*after.at || !strchr(lines->dialect->comments, *after.at)))
        return false;
    if (memchr(name.at, '[', name.len) && !memchr(name.at, '"', name.len) && !memchr(name.at, '\'', name.len))
        return false;
    lines->section[0] = '\0';
    lines->unclear = !add_name(lines->section, name);
    return true;
}

static void take_key(struct lines *lines, struct span line)
{
    struct span key = { line.at, key_len(line, lines->dialect->separators) };

    lines->key[0] = '\0';
    if (lines->unclear)
        return;
    memcpy(lines->key, lines->section, sizeof lines->key);
    if (!*lines->section || add_name(lines->key, (struct span){ ".", 1 }))
        (void)add_name(lines->key, key);
}

static size_t indent_of(struct span line)
{
    size_t count = 0;

    while (count < line.len && is_blank(line.at[count]))
        count++;
    return count;
}

static bool ends_with_backslash(struct span line)
{
    size_t count = 0;

    while (count < line.len && line.at[line.len - 1 - count] == '\\')
        count++;
    return count % 2;
}

/* Empty, or a comment; not so inside of a value. */
static bool is_nothing(const struct lines *lines, struct span line)
{
    if (lines->quote || (lines->continues && lines->dialect->backslashes))
        return false;
    return !line.len || (*line.at && strchr(lines->dialect->comments, *line.at));
}

/* git does not go on in the next line if the backslash is in a comment behind the value; Java does.
 * So a line that seems to go on counts, and so do those that follow it. */
static void follow_backslash(struct lines *lines, struct span line)
{
    lines->unclear = lines->unclear || (lines->continues && line.len && *line.at == '[');
    lines->continues = ends_with_backslash(lines->line);
    if (lines->continues)
        lines->key[0] = '\0';
}

/* A line that does not belong to the key before it.  False if it is a head. */
static bool read_new(struct lines *lines, struct span line)
{
    bool head = take_header(lines, line);

    lines->indent = indent_of(lines->line);
    lines->has_key = !head;
    lines->key[0] = '\0';
    if (head)
        return false;

    /* Some readers take more for a head than others. */
    lines->unclear = lines->unclear || (lines->dialect->sections && *line.at == '[');
    take_key(lines, line);
    return true;
}

/* Reads a line; false if it has nothing that could run, being empty, a comment or a head. */
static bool read_keyed(struct lines *lines)
{
    const struct dialect *dialect = lines->dialect;
    bool deeper = dialect->indents && lines->has_key && indent_of(lines->line) > lines->indent;
    struct span line = trimmed(lines->line);

    if (is_nothing(lines, line) || (!lines->continues && !deeper && !read_new(lines, line)))
        return false;
    if (dialect->toml)
        follow_toml(lines);
    if (dialect->backslashes)
        follow_backslash(lines, line);
    return true;
}

static bool next_keyed(struct lines *lines, const char *keys)
{
    while (take_line(lines))
        if (read_keyed(lines) && (!*lines->key || runs(lines->key, keys))) {
            lines->line = trimmed(lines->line);
            return true;
        }
    return false;
}

bool runpart_toml(const struct classify_input *in, const char *keys, char part[CLASSIFY_PART_MAX])
{
    static const struct dialect toml = { .comments = "#", .separators = "=", .sections = true, .toml = true };

    return compare_lines(in, &toml, next_keyed, keys, part);
}

bool runpart_ini(const struct classify_input *in, const char *keys, char part[CLASSIFY_PART_MAX])
{
    static const struct dialect ini = {
        .comments = "#;", .separators = "=:", .sections = true, .indents = true
    };

    return compare_lines(in, &ini, next_keyed, keys, part);
}

bool runpart_pairs(const struct classify_input *in, const char *keys, char part[CLASSIFY_PART_MAX])
{
    static const struct dialect pairs = { .comments = "#;", .separators = "=", .sections = true };

    return compare_lines(in, &pairs, next_keyed, keys, part);
}

bool runpart_gitconfig(const struct classify_input *in, const char *keys, char part[CLASSIFY_PART_MAX])
{
    static const struct dialect git = {
        .comments = "#;", .separators = "= \t", .sections = true, .backslashes = true
    };

    return compare_lines(in, &git, next_keyed, keys, part);
}

bool runpart_properties(const struct classify_input *in, const char *keys, char part[CLASSIFY_PART_MAX])
{
    static const struct dialect java = { .comments = "#!", .separators = "=: \t\f", .backslashes = true };

    return compare_lines(in, &java, next_keyed, keys, part);
}

/* --- other lines ----------------------------------------------------------------------------- */

static bool begins(struct span line, const char *word, size_t len)
{
    return line.len >= len && memcmp(line.at, word, len) == 0;
}

static bool has_word(struct span line, struct span word)
{
    if (*word.at == '^')
        return begins(line, word.at + 1, word.len - 1);
    return memmem(line.at, line.len, word.at, word.len) != NULL;
}

static bool next_word(struct lines *lines, const char *keys)
{
    struct span word;

    while (take_line(lines)) {
        lines->line = trimmed(lines->line);
        for (const char *left = keys; take_pattern(&left, &word);)
            if (has_word(lines->line, word))
                return true;
    }
    return false;
}

bool runpart_words(const struct classify_input *in, const char *keys, char part[CLASSIFY_PART_MAX])
{
    return compare_lines(in, NULL, next_word, keys, part);
}

/* What git and the well-known hosts read and nothing is run for; to switch a driver off neither.  A
 * driver of the diffs is only a set of patterns if git brings it along. */
static const char harmless_attributes[] =
    "text text=auto crlf eol=lf eol=crlf binary diff merge ident delta whitespace whitespace=* export-ignore "
    "export-subst encoding=* working-tree-encoding=* conflict-marker-size=* linguist-* gitlab-* merge=text "
    "merge=binary merge=union diff=ada diff=bash diff=bibtex diff=cpp diff=csharp diff=css diff=dts "
    "diff=elixir diff=fortran diff=fountain diff=golang diff=html diff=ini diff=java diff=kotlin "
    "diff=markdown diff=matlab diff=objc diff=pascal diff=perl diff=php diff=python diff=ruby diff=rust "
    "diff=scheme diff=tex";

static bool is_harmless_attribute(struct span attribute)
{
    const char *left = harmless_attributes;
    struct span pattern;

    if (attribute.len && (*attribute.at == '-' || *attribute.at == '!'))
        attribute = without(attribute, 1);
    while (take_pattern(&left, &pattern))
        if (glob_match_part(pattern.at, pattern.len, attribute.at, attribute.len))
            return true;
    return false;
}

static struct span take_word(struct span *line)
{
    struct span word = { line->at, 0 };

    while (word.len < line->len && !is_blank(line->at[word.len]))
        word.len++;
    *line = trimmed((struct span){ line->at + word.len, line->len - word.len });
    return word;
}

/* A pattern, then attributes.  A quoted pattern may have blanks in it, so it counts. */
static bool has_driver(struct span line)
{
    if (*line.at == '"' || *line.at == '[')
        return true;
    (void)take_word(&line);
    while (line.len)
        if (!is_harmless_attribute(take_word(&line)))
            return true;
    return false;
}

/* A macro can hide a driver behind a harmless name: with `macros` every line counts. */
static bool next_attributes(struct lines *lines, const char *macros)
{
    while (take_line(lines)) {
        lines->line = trimmed(lines->line);
        if (lines->line.len && *lines->line.at != '#' && (macros || has_driver(lines->line)))
            return true;
    }
    return false;
}

static bool has_macros(const struct classify_side *side)
{
    struct span text = text_of(side);

    return memmem(text.at, text.len, "[attr]", 6) != NULL;
}

bool runpart_attributes(const struct classify_input *in, const char *keys, char part[CLASSIFY_PART_MAX])
{
    (void)keys;
    return compare_lines(in, NULL, next_attributes,
                         has_macros(&in->old) || has_macros(&in->new) ? "macros" : NULL, part);
}

/* --- whole files ----------------------------------------------------------------------------- */

/* A line that begins with `import` is executed, whatever stands around it. */
bool runpart_pth(const struct classify_input *in, const char *keys, char part[CLASSIFY_PART_MAX])
{
    struct span text = text_of(&in->new);

    (void)keys, (void)part;
    return !memchr(text.at, '\0', text.len) || begins(text, "import", 6) ||
           memmem(text.at, text.len, "\nimport", 7) || memmem(text.at, text.len, "\rimport", 7);
}

bool runpart_executable(const struct classify_input *in, const char *keys, char part[CLASSIFY_PART_MAX])
{
    bool before = S_ISREG(in->old.mode) && (in->old.mode & 0111), after = in->new.mode & 0111;

    (void)keys;
    if (!S_ISREG(in->new.mode) || (!before && !after))
        return false;
    if (before != after)
        say(part, after ? "can be executed now" : "cannot be executed any more");
    return true;
}

bool runpart_plain(const struct classify_input *in, const char *keys, char part[CLASSIFY_PART_MAX])
{
    (void)keys, (void)part;
    return (!in->new.mode || S_ISREG(in->new.mode)) && !(in->new.mode & 0111) && !S_ISLNK(in->old.mode);
}

/* --- JSON ------------------------------------------------------------------------------------ */

/* NULL if it is no object, or one that two programs could read differently. */
static json_t *read_object(const struct classify_side *side)
{
    struct span text = text_of(side);
    json_t *json = side->mode ? json_loadb(text.at, text.len, JSON_REJECT_DUPLICATES, NULL) : json_object();

    if (json && !json_is_object(json)) {
        json_decref(json);
        return NULL;
    }
    return json;
}

/* The first member that `one` has otherwise than `other`, and that runs. */
static const char *first_difference(json_t *one, json_t *other, const char *keys)
{
    for (void *at = json_object_iter(one); at; at = json_object_iter_next(one, at)) {
        const char *key = json_object_iter_key(at);
        json_t *there = json_object_get(other, key);

        if ((!there || !json_equal(json_object_iter_value(at), there)) && (!keys || runs(key, keys)))
            return key;
    }
    return NULL;
}

static const char *either_difference(json_t *old, json_t *new, const char *keys, const char **verb)
{
    const char *key = first_difference(new, old, keys);

    *verb = "changed";
    if (key || !(key = first_difference(old, new, keys)))
        return key;
    *verb = "removed";
    return key;
}

static bool objects_differ(json_t *old, json_t *new, const char *keys, char *part)
{
    const char *verb, *key = either_difference(old, new, keys, &verb);

    if (!key)
        return false;

    json_t *was = json_object_get(old, key), *is = json_object_get(new, key);
    bool parts = json_is_object(is) && (!was || json_is_object(was));
    const char *below = parts ? either_difference(was, is, NULL, &verb) : NULL;

    say(part, below ? "%.40s.%.40s %s" : "%.40s%.0s %s", key, below ? below : "", verb);
    return true;
}

bool runpart_json(const struct classify_input *in, const char *keys, char part[CLASSIFY_PART_MAX])
{
    if (unreadable(in, part))
        return true;

    json_t *old = read_object(&in->old), *new = read_object(&in->new);
    bool differ = true;

    if (old && new)
        differ = objects_differ(old, new, keys, part);
    else
        say(part, "is no plain JSON");
    json_decref(old);
    json_decref(new);
    return differ;
}
