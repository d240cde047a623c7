#include "changes/ignore.h"

#include "base/array.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

static void pay(uint64_t *left, size_t steps)
{
    *left -= steps < *left ? steps : *left;
}

/* --- sets: [a-z], [!a], [[:alpha:]] --- */

static bool is_between(unsigned char byte, unsigned char low, unsigned char high)
{
    return byte >= low && byte <= high;
}

static bool is_alpha(unsigned char byte)
{
    return is_between(byte | 0x20, 'a', 'z');
}

static bool is_digit(unsigned char byte)
{
    return is_between(byte, '0', '9');
}

static bool is_alnum(unsigned char byte)
{
    return is_alpha(byte) || is_digit(byte);
}

static bool is_blank(unsigned char byte)
{
    return byte == ' ' || byte == '\t';
}

static bool is_control(unsigned char byte)
{
    return byte < 0x20 || byte == 0x7f;
}

static bool is_graph(unsigned char byte)
{
    return is_between(byte, 0x21, 0x7e);
}

static bool is_lower(unsigned char byte)
{
    return is_between(byte, 'a', 'z');
}

static bool is_print(unsigned char byte)
{
    return is_between(byte, 0x20, 0x7e);
}

static bool is_punct(unsigned char byte)
{
    return is_graph(byte) && !is_alnum(byte);
}

static bool is_space(unsigned char byte)
{
    return byte == ' ' || is_between(byte, '\t', '\r');
}

static bool is_upper(unsigned char byte)
{
    return is_between(byte, 'A', 'Z');
}

static bool is_hex(unsigned char byte)
{
    return is_digit(byte) || is_between(byte | 0x20, 'a', 'f');
}

static const struct class
{
    const char *name;
    bool (*has)(unsigned char byte);
} classes[] = {
    { "alnum", is_alnum }, { "alpha", is_alpha }, { "blank", is_blank }, { "cntrl", is_control },
    { "digit", is_digit }, { "graph", is_graph }, { "lower", is_lower }, { "print", is_print },
    { "punct", is_punct }, { "space", is_space }, { "upper", is_upper }, { "xdigit", is_hex },
};

/* One place in a set while it is read. */
struct set {
    const char *at;
    unsigned char byte; /* that is looked for */
    int before;         /* the last single member, from which a range can begin; -1: none */
    bool found, broken;
    uint64_t *left; /* steps */
};

/* At a byte that stands for itself, maybe behind a backslash. */
static unsigned char member(struct set *set)
{
    set->at += *set->at == '\\';
    set->broken = set->broken || !*set->at;
    return (unsigned char)(*set->at ? *set->at++ : 0);
}

/* At "[:".  False: it is no class, but a set with these bytes in it. */
static bool read_class(struct set *set)
{
    const char *name = set->at + 2, *end = strchr(name, ']');
    size_t len = end ? (size_t)(end - name) : 0;

    pay(set->left, end ? len : strlen(name));
    set->broken = set->broken || !end;
    if (!end || len == 0 || end[-1] != ':')
        return !end;
    set->at = end + 1;
    set->before = -1;
    for (size_t i = 0; i < ARRAY_LEN(classes); i++)
        if (strlen(classes[i].name) == len - 1 && memcmp(classes[i].name, name, len - 1) == 0) {
            set->found = set->found || classes[i].has(set->byte);
            return true;
        }
    set->broken = true;
    return true;
}

static void read_member(struct set *set)
{
    if (*set->at == '-' && set->before >= 0 && set->at[1] && set->at[1] != ']') {
        set->at++;
        set->found = is_between(set->byte, (unsigned char)set->before, member(set)) || set->found;
        set->before = -1;
        return;
    }
    if (set->at[0] == '[' && set->at[1] == ':' && read_class(set))
        return;
    set->before = member(set);
    set->found = set->found || set->byte == set->before;
}

/* Whether the set at *at, behind its '[', has the byte; *at is then behind it.  A set that is never closed,
 * or has an unknown class, has nothing. */
static bool in_set(const char **at, char byte, uint64_t *left)
{
    bool inverted = **at == '!' || **at == '^';
    struct set set = { .at = *at + inverted, .byte = (unsigned char)byte, .before = -1, .left = left };

    do {
        set.broken = set.broken || !*set.at;
        if (!set.broken)
            read_member(&set);
    } while (!set.broken && *set.at != ']');
    pay(left, (size_t)(set.at - *at));
    *at = set.at + !set.broken;
    return !set.broken && set.found != inverted && byte != '/';
}

/* --- patterns --- */

/* Whether the element at *pattern, which is no star, takes the byte; moves behind it. */
static bool takes(const char **pattern, char byte, uint64_t *left)
{
    char element = *(*pattern)++;

    if (element == '?')
        return byte != '/';
    if (element == '[')
        return in_set(pattern, byte, left);
    if (element == '\\' && **pattern)
        element = *(*pattern)++;
    else if (element == '\\')
        return false;
    return element == byte;
}

/* A run of stars, the rest behind it, and from where in the text that is tried next. */
struct star {
    const char *rest, *resume;
    bool deep;  /* crosses slashes */
    bool whole; /* stands for whole components, and its slash with them */
};

static struct star read_star(const char *start, const char **pattern, const char *text)
{
    const char *first = *pattern, *rest = first + strspn(first, "*");
    bool alone =
        (first == start || first[-1] == '/') && (!*rest || *rest == '/' || strncmp(rest, "\\/", 2) == 0);
    struct star star = { .rest = rest, .resume = text, .deep = rest - first > 1 && alone };

    star.whole = star.deep && *rest == '/';
    star.rest += star.whole;
    *pattern = star.rest;
    return star;
}

/* Moves to the next place where the rest could begin; false if there is none. */
static bool widen(struct star *star)
{
    if (!star->rest || !*star->resume)
        return false;
    if (star->whole) {
        star->resume = strchr(star->resume, '/');
        if (!star->resume)
            star->rest = NULL;
        return star->rest && star->resume++;
    }
    return (star->deep || *star->resume != '/') && star->resume++;
}

/* Only the last star of a component and the last `**` are ever widened.  That is enough: what stands before
 * a slash is settled by that slash, and what stands before a `**` is best matched as early as it can be. */
bool ignore_match(const char *pattern, const char *text, uint64_t *left)
{
    const char *start = pattern;
    const struct star none = { 0 };
    struct star near = none, far = none;

    while (*text || *pattern) {
        pay(left, 1);
        if (!*left)
            return false;
        if (*pattern == '*') {
            const char *stars = pattern;
            struct star star = read_star(start, &pattern, text);

            pay(left, (size_t)(pattern - stars));
            near = none;
            *(star.deep ? &far : &near) = star;
            continue;
        }
        if (*text && *pattern && takes(&pattern, *text, left)) {
            text++;
            continue;
        }
        if (!widen(&near)) {
            near = none;
            if (!widen(&far))
                return false;
            pattern = far.rest;
            text = far.resume;
            continue;
        }
        pattern = near.rest;
        text = near.resume;
    }
    return true;
}

/* --- rules --- */

void ignore_rules_free(struct ignore_rules *rules)
{
    for (size_t i = 0; i < rules->len; i++)
        free(rules->items[i].pattern);
    free(rules->items);
    *rules = IGNORE_RULES_NONE;
}

/* Blanks at the end do not count, unless there is a backslash before them. */
static size_t without_blanks(const char *line, size_t len)
{
    size_t kept = 0;

    for (size_t i = 0; i < len; i++) {
        if (line[i] == ' ')
            continue;
        i += line[i] == '\\';
        kept = i < len ? i + 1 : len;
    }
    return kept;
}

static char *copy_part(const char *bytes, size_t len)
{
    char *copy = memory_zero(len + 1);

    memcpy(copy, bytes, len);
    return copy;
}

static void add_rule(struct ignore_rules *rules, const char *line, size_t len)
{
    struct ignore_rule rule = { 0 };

    if (len && *line == '!') {
        rule.shows = true;
        line++;
        len--;
    }
    if (len && line[len - 1] == '/') {
        rule.directory = true;
        len--;
    }
    rule.any_directory = !memchr(line, '/', len);
    if (len && *line == '/') {
        line++;
        len--;
    }
    rule.pattern = copy_part(line, len);
    rule.plain = strcspn(rule.pattern, "*?[\\");
    *array_add(rules) = rule;
}

static void add_line(struct ignore_rules *rules, const char *line, size_t len)
{
    const char *nul = memchr(line, '\0', len);

    if (!len || *line == '#')
        return;
    len = nul ? (size_t)(nul - line) : len - (line[len - 1] == '\r');
    add_rule(rules, line, without_blanks(line, len));
}

void ignore_parse(struct ignore_rules *rules, const char *bytes, size_t len)
{
    const char *end = bytes + len;

    if (len > IGNORE_BYTES_MAX)
        return;
    if (len >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0)
        bytes += 3;
    while (bytes < end && rules->len < IGNORE_RULES_MAX) {
        const char *newline = memchr(bytes, '\n', (size_t)(end - bytes));

        add_line(rules, bytes, (size_t)((newline ? newline : end) - bytes));
        bytes = newline ? newline + 1 : end;
    }
    if (bytes < end) /* a rule that was left out could be one that shows */
        ignore_rules_free(rules);
}

/* As git does, the plain beginning is compared first and then forgotten: what follows it is a pattern of
 * its own. */
static bool rule_matches(const struct ignore_rule *rule, const char *name, uint64_t *left)
{
    enum { AT_ONCE = 16 /* bytes that a comparison takes in one step, about */ };

    pay(left, 1 + rule->plain / AT_ONCE);
    if (strncmp(rule->pattern, name, rule->plain) != 0)
        return false;
    return ignore_match(rule->pattern + rule->plain, name + rule->plain, left);
}

enum ignore_answer ignore_ask(struct ignore_rules *rules, const char *path, bool directory)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    uint64_t left = IGNORE_STEPS_MAX - rules->steps;
    enum ignore_answer answer = IGNORE_UNSAID;

    for (size_t i = rules->len; i-- > 0 && answer == IGNORE_UNSAID;) {
        const struct ignore_rule *rule = &rules->items[i];

        if ((!rule->directory || directory) && *rule->pattern &&
            rule_matches(rule, rule->any_directory ? name : path, &left))
            answer = rule->shows ? IGNORE_NO : IGNORE_YES;
        if (!left)
            answer = IGNORE_TOO_LONG;
    }
    rules->steps = IGNORE_STEPS_MAX - left;
    return answer;
}
