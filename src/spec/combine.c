/* How one layer narrows another.
 *
 * Grants.  --read, --write and -v are three ways to the same thing, the host's files, so a ceiling
 * on one of them holds for the others where they come to the same: what a layer's files.read
 * leaves out is not visible by --write or -v either, and what its files.write leaves out is not
 * writable by -v.  A list that a layer does not say restricts nothing.
 *
 * The narrower of two paths is the one that lies in the other.  Links are followed first, so that
 * a link in an allowed directory is no way out of it. */

#include "spec/combine.h"

#include "base/own.h"
#include "base/text.h"
#include "spec/combine_network.h"
#include "spec/layer.h"
#include "spec/values.h"

#include <string.h>

/* The path with its links followed as far as it exists; what does not exist yet has none. */
static char *follow(const char *path)
{
    autofree char *known = text_copy(path);

    for (;;) {
        autofree char *real = realpath(*known ? known : "/", NULL);
        char *slash = strrchr(known, '/');

        if (real)
            return text_format("%s%s", strcmp(real, "/") == 0 ? "" : real, path + strlen(known));
        if (!slash)
            return text_copy(path);
        *slash = '\0';
    }
}

static bool lies_in(const char *path, const char *tree)
{
    autofree char *real_path = follow(path), *real_tree = follow(tree);

    return path_within(real_path, real_tree);
}

/* Adds `volume` as far as `allowed` covers it; true if that is all of it. */
static bool add_allowed(const struct volume *volume, const struct volumes *allowed, struct volumes *out)
{
    const struct volume *best = NULL;
    size_t source_len = strcmp(volume->source, "/") == 0 ? 0 : strlen(volume->source);

    for (size_t i = 0; i < allowed->len; i++)
        if (lies_in(volume->source, allowed->items[i].source) && (!best || allowed->items[i].mode > best->mode))
            best = &allowed->items[i];
    if (best) {
        bool whole = best->mode >= volume->mode;

        volumes_add(out, volume->source, volume->target, whole ? volume->mode : best->mode);
        return whole;
    }

    /* None covers it: what remains are the allowed trees inside it. */
    for (size_t i = 0; i < allowed->len; i++) {
        const struct volume *inner = &allowed->items[i];

        if (!path_within(inner->source, volume->source) || !lies_in(inner->source, volume->source))
            continue;

        autofree char *target = text_format("%s%s", volume->target, inner->source + source_len);

        volumes_add(out, inner->source, target, inner->mode < volume->mode ? inner->mode : volume->mode);
    }
    return false;
}

static bool narrow_to(struct volumes *volumes, const struct volumes *allowed)
{
    struct volumes kept = { 0 };
    bool changed = false;

    for (size_t i = 0; i < volumes->len; i++)
        changed |= !add_allowed(&volumes->items[i], allowed, &kept);
    volumes_free(volumes);
    *volumes = kept;
    return changed;
}

static void add_paths(const struct strings *paths, enum tree_mode mode, struct volumes *out)
{
    for (size_t i = 0; i < paths->len; i++)
        volumes_add(out, paths->items[i], paths->items[i], mode);
}

/* files.read: all that a layer shows in any way may be seen. */
static bool narrow_visible(struct volumes *volumes, const struct layer *ceiling)
{
    struct volumes allowed = { 0 };

    if (!ceiling->said[FIELD_READ])
        return false;
    add_paths(&ceiling->values.read, TREE_COW, &allowed);
    add_paths(&ceiling->values.write, TREE_COW, &allowed);
    for (size_t i = 0; i < ceiling->values.volumes.len; i++)
        volumes_add(&allowed, ceiling->values.volumes.items[i].source, "/", TREE_COW);

    bool changed = narrow_to(volumes, &allowed);

    volumes_free(&allowed);
    return changed;
}

static void add_writable(const struct layer *ceiling, struct volumes *allowed)
{
    add_paths(&ceiling->values.write, TREE_COW, allowed);
    for (size_t i = 0; i < ceiling->values.volumes.len; i++)
        if (ceiling->values.volumes.items[i].mode == TREE_COW)
            volumes_add(allowed, ceiling->values.volumes.items[i].source, "/", TREE_COW);
}

/* files.write, for --write: only what it covers stays at all. */
static bool narrow_writable(struct volumes *volumes, const struct layer *ceiling)
{
    struct volumes allowed = { 0 };

    if (!ceiling->said[FIELD_WRITE])
        return false;
    add_writable(ceiling, &allowed);

    bool changed = narrow_to(volumes, &allowed);

    volumes_free(&allowed);
    return changed;
}

/* files.write, for -v: what it does not cover becomes read-only. */
static bool narrow_mode(struct volumes *volumes, const struct layer *ceiling)
{
    struct volumes allowed = { 0 };
    bool changed = false;

    if (!ceiling->said[FIELD_WRITE])
        return false;
    add_writable(ceiling, &allowed);
    for (size_t i = 0; i < volumes->len; i++) {
        bool covered = volumes->items[i].mode == TREE_RO;

        for (size_t j = 0; j < allowed.len && !covered; j++)
            covered = lies_in(volumes->items[i].source, allowed.items[j].source);
        if (!covered)
            volumes->items[i].mode = TREE_RO;
        changed |= !covered;
    }
    volumes_free(&allowed);
    return changed;
}

/* --read and --write as volumes, and back. */
static const struct field *narrow_paths(const struct field *field, const struct layer *ceiling,
                                        struct strings *paths)
{
    const struct field *culprit = NULL;
    struct volumes volumes = { 0 };

    add_paths(paths, TREE_RO, &volumes);
    if (narrow_visible(&volumes, ceiling))
        culprit = &fields[FIELD_READ];
    if (field == &fields[FIELD_WRITE] && narrow_writable(&volumes, ceiling))
        culprit = &fields[FIELD_WRITE];
    if (culprit) {
        strings_free(paths);
        for (size_t i = 0; i < volumes.len; i++)
            if (!strings_have(paths, volumes.items[i].source))
                strings_add(paths, volumes.items[i].source);
    }
    volumes_free(&volumes);
    return culprit;
}

static const struct field *narrow_volumes(const struct layer *ceiling, struct volumes *volumes)
{
    const struct field *culprit = NULL;

    if (narrow_visible(volumes, ceiling))
        culprit = &fields[FIELD_READ];
    if (narrow_mode(volumes, ceiling))
        culprit = &fields[FIELD_WRITE];
    if (ceiling->said[FIELD_VOLUMES] && narrow_to(volumes, &ceiling->values.volumes))
        culprit = &fields[FIELD_VOLUMES];
    return culprit;
}

static bool narrow_union(const struct strings *more, struct strings *list)
{
    bool changed = false;

    for (size_t i = 0; i < more->len; i++) {
        if (strings_have(list, more->items[i]))
            continue;
        strings_add(list, more->items[i]);
        changed = true;
    }
    return changed;
}

static bool narrow_smaller(uint64_t bound, uint64_t *value)
{
    if (!bound || (*value && *value <= bound))
        return false;
    *value = bound;
    return true;
}

void combine_harden(const struct field *field, const struct layer *ceiling, struct spec *spec)
{
    if (field_is_limit(field) && ceiling->said[field - fields])
        ((struct limit *)field_of(field, spec))->hard |=
            ((const struct limit *)field_of_const(field, &ceiling->values))->hard;
    if (field == &fields[FIELD_RULES])
        combine_network_denials(ceiling, spec);
}

static bool narrow_limit(const struct limit *bound, struct limit *value)
{
    bool harder = bound->hard && !value->hard;

    value->hard |= bound->hard;
    return narrow_smaller(bound->max, &value->max) || harder;
}

const struct field *combine_narrow(const struct field *field, const struct layer *ceiling, struct spec *spec)
{
    const void *bound = field_of_const(field, &ceiling->values);
    void *value = field_of(field, spec);
    bool said = ceiling->said[field - fields], changed = false;

    switch (field->combine) {
    case COMBINE_OWNER:
    case COMBINE_IMAGE:
    case COMBINE_IMAGES:
        break;
    case COMBINE_AND:
        changed = said && !*(const bool *)bound && *(bool *)value;
        *(bool *)value = *(bool *)value && !changed;
        break;
    case COMBINE_SMALLER:
        changed = said && (field_is_limit(field) ? narrow_limit(bound, value)
                                                 : narrow_smaller(*(const uint64_t *)bound, value));
        break;
    case COMBINE_STRICTER:
        changed = said && *(const unsigned *)bound > *(unsigned *)value;
        if (changed)
            *(unsigned *)value = *(const unsigned *)bound;
        break;
    case COMBINE_UNION:
        changed = said && narrow_union(bound, value);
        break;
    case COMBINE_NETWORK:
        return combine_network(field, ceiling, spec);
    case COMBINE_GRANT:
        return field->type == TYPE_VOLUMES ? narrow_volumes(ceiling, value)
                                           : narrow_paths(field, ceiling, value);
    }
    return changed ? field : NULL;
}

bool combine_image_allowed(const struct layer *ceiling, const char *image)
{
    const struct strings *allowed = &ceiling->values.images;
    bool is_path = image[0] == '/';

    if (!ceiling->said[FIELD_IMAGES])
        return true;
    for (size_t i = 0; i < allowed->len; i++)
        if (strcmp(image, allowed->items[i]) == 0 ||
            (is_path && allowed->items[i][0] == '/' && lies_in(image, allowed->items[i])))
            return true;
    return false;
}
