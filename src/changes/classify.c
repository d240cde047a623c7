#include "changes/classify.h"

#include "changes/plainname.h"
#include "changes/watchlist.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static bool is_there(const struct classify_side *side)
{
    return side->mode && !S_ISDIR(side->mode);
}

/* Rights other than to execute steer nothing. */
static bool is_changed(const struct classify_side *old, const struct classify_side *new)
{
    if (!is_there(old) || !is_there(new))
        return is_there(old) || is_there(new);
    if ((old->mode ^ new->mode) & S_IFMT)
        return true;
    if (S_ISREG(new->mode) && !(old->mode & 0111) != !(new->mode & 0111))
        return true;
    if (old->cut || new->cut || !old->bytes || !new->bytes)
        return true;
    return old->len != new->len || memcmp(old->bytes, new->bytes, new->len) != 0;
}

/* What lies in a bare repository is judged as if that directory was called `.git`. */
static bool read_path(const struct classify_input *in, struct plainname *out)
{
    const char *end = in->path + in->path_len;
    const char *below = in->in_bare ? in->in_bare : end;

    plainname_clear(out);
    if (!plainname_add(out, in->path, (size_t)(below - in->path)))
        return false;
    return !in->in_bare || (plainname_add(out, ".git", 4) && plainname_add(out, below, (size_t)(end - below)));
}

static bool is_link(const struct classify_input *in)
{
    return S_ISLNK(in->old.mode) || S_ISLNK(in->new.mode);
}

/* A link can stand for a whole directory, so one above a listed place counts, and no part of it is
 * looked at; but that a link can be executed says nothing. */
static bool row_counts(const struct watch_row *row, const struct classify_input *in,
                       const struct plainname *name, char *part)
{
    enum plainname_place place = plainname_compare(row->pattern, name);
    runpart_check *check = watchlist_check(row);

    part[0] = '\0';
    if (place == PLAINNAME_NO)
        return false;
    if (is_link(in) && row->part != PART_EXECUTABLE)
        return row->class != CLASSIFY_ORDINARY;
    return place == PLAINNAME_YES && (!check || check(in, watchlist_keys(row), part));
}

static void set(struct classify_verdict *out, enum classify_class class, const char *reason)
{
    out->class = class;
    out->reason = reason;
}

static void judge_path(const struct classify_input *in, const struct plainname *name,
                       struct classify_verdict *out)
{
    for (const struct watch_row *row = watchlist; *row->pattern; row++) {
        if (row_counts(row, in, name, out->part)) {
            set(out, row->class, row->reason);
            return;
        }
    }
    out->part[0] = '\0';
}

/* Who writes to a link writes to where it leads.  Only class A: leading to a Makefile runs nothing.
 * `name` is the path of the link, and changed. */
static void judge_target(const struct classify_side *link, struct plainname *name, struct classify_verdict *out)
{
    if (!link->bytes || link->cut || !plainname_add(name, "..", 2))
        return set(out, CLASSIFY_AUTORUN, "it is a link, and where it leads is not known");
    if (link->len && *link->bytes == '/')
        plainname_clear(name);
    if (!plainname_add(name, link->bytes, link->len))
        return set(out, CLASSIFY_AUTORUN, "it is a link, and where it leads cannot be read");

    for (const struct watch_row *row = watchlist; *row->pattern; row++) {
        if (row->class != CLASSIFY_AUTORUN || plainname_compare(row->pattern, name) == PLAINNAME_NO)
            continue;
        set(out, CLASSIFY_AUTORUN, row->reason);
        snprintf(out->part, sizeof out->part, "leads to %s", row->pattern);
        return;
    }
}

void classify(const struct classify_input *in, struct classify_verdict *out)
{
    struct plainname name;

    set(out, CLASSIFY_ORDINARY, "");
    out->part[0] = '\0';
    if (!is_changed(&in->old, &in->new))
        return;
    if (!read_path(in, &name))
        return set(out, CLASSIFY_AUTORUN, "its path cannot be judged");
    judge_path(in, &name, out);
    if (S_ISLNK(in->new.mode) && out->class != CLASSIFY_AUTORUN)
        judge_target(&in->new, &name, out);
}

static bool have(const char *const *names, size_t len, const char *want)
{
    for (size_t i = 0; i < len; i++) {
        struct plainname name;

        plainname_clear(&name);
        if (plainname_add(&name, names[i], strlen(names[i])) && strcmp(name.text, want) == 0)
            return true;
    }
    return false;
}

/* With a `commondir` the objects and refs are taken from elsewhere. */
const char *const classify_telling[CLASSIFY_TELLING] = { "HEAD", "commondir", "objects", "refs" };

bool classify_bare_repository(const char *const *names, size_t len)
{
    if (!have(names, len, "head"))
        return false;
    return have(names, len, "commondir") || (have(names, len, "objects") && have(names, len, "refs"));
}

const char *classify_name(enum classify_class class)
{
    static const char *const names[] = { "ordinary", "build", "autorun" };

    return names[class];
}
