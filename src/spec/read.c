#include "spec/read.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "spec/bundle.h"
#include "spec/combine.h"
#include "spec/file.h"
#include "spec/forms.h"
#include "spec/layer.h"
#include "spec/mock.h"
#include "spec/node.h"
#include "spec/rule_forms.h"
#include "spec/values.h"

#include <string.h>

void spec_request_free(struct spec_request *request)
{
    free(request->items);
    strings_free(&request->command);
    *request = SPEC_REQUEST_NONE;
}

void spec_sources_usual(struct spec_sources *sources, const char *home, const char *cwd, uid_t uid,
                        char **variables, char **owner_file_buffer)
{
    const char *config = NULL;

    for (char **at = variables; *at; at++)
        if (text_starts(*at, "XDG_CONFIG_HOME=/"))
            config = strchr(*at, '/');
    *owner_file_buffer =
        config ? text_format("%s/cove/policy.yaml", config) : text_format("%s/.config/cove/policy.yaml", home);
    *sources = (struct spec_sources){ SPEC_ADMIN_FILE, 0, *owner_file_buffer, home, cwd, uid, variables };
}

/* All that one spec_read() works on. */
struct reading {
    const struct spec_sources *sources;
    struct layer admin, owner; /* the owner's grows with each file and flag */
    struct spec_origins *origins;
    struct error *err;
};

static void record(struct spec_origins *origins, const struct layer *layer, size_t field,
                   enum origin_effect effect, const char *value)
{
    *array_add(origins) = (struct origin){ (enum field_id)field, layer->kind, effect,
                                           text_copy(layer->said[field]), text_copy(value) };
}

static void set_defaults(struct spec *spec)
{
    static const struct form_context nothing = { 0 };

    for (size_t i = 0; i < FIELD_COUNT; i++) {
        autotext struct text why = TEXT_NONE;

        if (fields[i].initial)
            (void)value_read_text(&fields[i], &nothing, fields[i].initial, spec, &why);
    }
}

/* Refusals that name both places */

static int refuse_wider(struct error *err, const char *place, const char *value, const struct layer *ceiling,
                        const struct field *field)
{
    autotext struct text shown = TEXT_NONE, bound = TEXT_NONE;

    node_show_text(value, &shown);
    value_show(field, &ceiling->values, &bound);
    return error_set(err, ERROR_REFUSED, "%s: %s is more than %s allows (%s: %.150s)", place,
                     text_string(&shown), ceiling->said[field - fields], field->key, text_string(&bound));
}

/* With no user said, root stays root inside. */
static bool is_root_inside(const char *user, uid_t uid)
{
    if (!user)
        return uid == 0;
    return strcmp(user, "root") == 0 || strcmp(user, "0") == 0 || text_starts(user, "0:");
}

static int refuse_root(struct error *err, const char *user_place, const char *user, const char *root_place)
{
    error_set(err, ERROR_REFUSED,
              "%s: the command would be root inside (user: %s), which %s forbids (root: false)",
              user_place ? user_place : "you are root", user ? user : "not said", root_place);
    return error_hint(err, "choose another one with -u NUMBER");
}

/* The owner */

/* Takes over what one file or flag of the owner says.  `firm`: it was asked for on this command
 * line, so that more than the administrator allows is refused and not just cut. */
static int take(struct reading *reading, struct layer *said, bool firm)
{
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        autotext struct text value = TEXT_NONE;
        const struct field *culprit = NULL;

        if (!said->said[i])
            continue;
        value_show(&fields[i], &said->values, &value);
        combine_harden(&fields[i], &reading->admin, &said->values);
        if (fields[i].combine != COMBINE_UNION)
            culprit = combine_narrow(&fields[i], &reading->admin, &said->values);
        if (culprit && firm)
            return refuse_wider(reading->err, said->said[i], text_string(&value), &reading->admin, culprit);
        record(reading->origins, said, i, culprit ? ORIGIN_CUT : ORIGIN_HOLDS, text_string(&value));
        value_move(&fields[i], &said->values, &reading->owner.values);
        free(reading->owner.said[i]);
        reading->owner.said[i] = text_copy(said->said[i]);
    }
    return 0;
}

static struct file_rules trusted_by(const struct spec_sources *sources, enum layer_kind layer)
{
    return layer == LAYER_ADMIN ? (struct file_rules){ sources->admin_uid, sources->admin_uid, "root", false }
                                : (struct file_rules){ sources->uid, 0, "you or root", true };
}

/* What its rules name beside the policy file itself. */
static int read_beside(const struct spec_sources *sources, struct layer *said, const char *path,
                       struct error *err)
{
    const struct form_context context = { .home = sources->home, .cwd = sources->cwd };
    const struct file_rules rules = trusted_by(sources, said->kind);

    return bundles_read(&said->values.rules, path, &context, &rules, err) < 0
               ? -1
               : mocks_place(&said->values.rules, path, &context, err);
}

static int read_admin(struct reading *reading)
{
    const struct spec_sources *sources = reading->sources;
    const struct file_rules rules = trusted_by(sources, LAYER_ADMIN);
    const struct form_context context = { .home = sources->home };
    autotext struct text bytes = TEXT_NONE, shown = TEXT_NONE;
    autonode struct node root = NODE_NONE;

    if (!sources->admin_file)
        return 0;
    text_add_inert(&shown, sources->admin_file);

    int missing = file_read_trusted(sources->admin_file, &rules, &bytes, reading->err);

    if (missing)
        return missing < 0 ? -1 : 0;
    if (node_read_yaml(text_string(&bytes), bytes.len, text_string(&shown), &root, reading->err) < 0 ||
        layer_read(&root, text_string(&shown), "", PLACE_ADMIN, &context, &reading->admin, reading->err) < 0 ||
        read_beside(sources, &reading->admin, sources->admin_file, reading->err) < 0)
        return -1;
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        autotext struct text value = TEXT_NONE;

        if (!reading->admin.said[i])
            continue;
        value_show(&fields[i], &reading->admin.values, &value);
        record(reading->origins, &reading->admin, i, ORIGIN_CEILING, text_string(&value));
    }
    return 0;
}

/* A policy file of the owner, or a spec as JSON.  `firm`: named on the command line, so it must
 * be there. */
static int read_owner_file(struct reading *reading, const char *path, bool json, bool firm)
{
    const struct spec_sources *sources = reading->sources;
    const struct file_rules rules = trusted_by(sources, LAYER_OWNER);
    const struct form_context context = { .home = sources->home, .environ = json ? NULL : sources->environ };
    autotext struct text bytes = TEXT_NONE, shown = TEXT_NONE;
    autonode struct node root = NODE_NONE;
    autolayer struct layer said = { .kind = LAYER_OWNER };
    int missing = file_read_trusted(path, &rules, &bytes, reading->err);

    text_add_inert(&shown, path);
    if (missing < 0)
        return -1;
    if (missing && firm)
        return error_set(reading->err, ERROR_MISSING, "%s: there is no such file", text_string(&shown));
    if (missing)
        return 0;
    if ((json ? node_read_json : node_read_yaml)(text_string(&bytes), bytes.len, text_string(&shown), &root,
                                                 reading->err) < 0 ||
        layer_read(&root, text_string(&shown), "", json ? PLACE_SPEC : PLACE_OWNER, &context, &said,
                   reading->err) < 0 ||
        read_beside(sources, &said, path, reading->err) < 0)
        return -1;
    return take(reading, &said, firm);
}

static int read_flag(struct reading *reading, const struct flag_use *use)
{
    const struct spec_sources *sources = reading->sources;
    autofree char *flag = text_format("--%s", use->flag->name);
    const struct form_context context = { sources->home, sources->cwd, sources->environ, PLACE_FLAG, flag };
    const char *value = use->flag->argument ? use->value : use->flag->fixed;
    autolayer struct layer said = { .kind = LAYER_OWNER };
    autotext struct text why = TEXT_NONE, shown = TEXT_NONE;

    if (!value_read_text(use->field, &context, value, &said.values, &why)) {
        node_show_text(value, &shown);
        return error_set(reading->err, ERROR_INVALID, "--%s: %s %s", use->flag->name, text_string(&shown),
                         text_string(&why));
    }
    said.said[use->field - fields] = text_copy(flag);
    return take(reading, &said, true);
}

static int read_env_line(struct reading *reading, char *line, const char *shown, unsigned number)
{
    const struct form_context context = { .environ = reading->sources->environ };
    const struct node node = { .line = number, .text = line };
    autolayer struct layer said = { .kind = LAYER_OWNER };
    autotext struct text why = TEXT_NONE;

    if (!value_read_text(&fields[FIELD_ENV], &context, line, &said.values, &why))
        return layer_complain(reading->err, shown, &node, "env", text_string(&why));
    said.said[FIELD_ENV] = text_format("%s:%u", shown, number);
    return take(reading, &said, true);
}

/* One KEY=VALUE or KEY a line, empty lines, and lines that begin with #; quotes have no meaning,
 * as in docker's files. */
static int read_env_file(struct reading *reading, const char *path)
{
    autotext struct text bytes = TEXT_NONE, shown = TEXT_NONE;
    unsigned number = 0;

    if (file_read_named(path, &bytes, reading->err) < 0)
        return -1;
    text_add_inert(&shown, path);
    if (strlen(text_string(&bytes)) != bytes.len)
        return error_set(reading->err, ERROR_INVALID, "%s: has a zero byte in it", text_string(&shown));
    for (char *line = bytes.data, *next; line && *line; line = next) {
        size_t len = strcspn(line, "\n");

        next = line + len + (line[len] == '\n');
        line[len] = '\0';
        if (len && line[len - 1] == '\r')
            line[len - 1] = '\0';
        number++;
        if (*line && *line != '#' && read_env_line(reading, line, text_string(&shown), number) < 0)
            return -1;
    }
    return 0;
}

/* Files first, in their order, so that a flag wins wherever it stands. */
static int read_owner(struct reading *reading, const struct spec_request *request)
{
    bool standing = reading->sources->owner_file != NULL;

    for (size_t i = 0; i < request->len; i++)
        standing = standing && request->items[i].flag->kind != FLAG_SPEC;
    if (standing && read_owner_file(reading, reading->sources->owner_file, false, false) < 0)
        return -1;
    for (size_t i = 0; i < request->len; i++) {
        enum flag_kind kind = request->items[i].flag->kind;

        if ((kind == FLAG_SPEC || kind == FLAG_POLICY) &&
            read_owner_file(reading, request->items[i].value, kind == FLAG_SPEC, true) < 0)
            return error_while(reading->err, "--%s", request->items[i].flag->name);
    }
    for (size_t i = 0; i < request->len; i++) {
        const struct flag_use *use = &request->items[i];

        if (use->flag->kind == FLAG_FIELD && read_flag(reading, use) < 0)
            return -1;
        if (use->flag->kind == FLAG_ENV_FILE && read_env_file(reading, use->value) < 0)
            return error_while(reading->err, "--env-file");
    }
    return 0;
}

/* The end */

static bool same_name(const char *a, const char *b)
{
    size_t len = strcspn(a, "=");

    return strncmp(a, b, len + 1) == 0;
}

/* One order and no repetition, so that what means the same has the same hash. */
static void normalise(struct spec *spec)
{
    autostrings struct strings env = STRINGS_NONE;

    for (size_t i = 0; i < spec->env.len; i++) {
        size_t later = i + 1;

        while (later < spec->env.len && !same_name(spec->env.items[i], spec->env.items[later]))
            later++;
        if (later == spec->env.len)
            strings_add(&env, spec->env.items[i]);
    }
    strings_free(&spec->env);
    strings_sort(&env);
    strings_copy(&spec->env, &env);
    strings_sort(&spec->read);
    strings_sort(&spec->write);
    strings_sort(&spec->hide);
    strings_sort(&spec->host_services);
    strings_sort(&spec->registries);
    rule_list_sort(&spec->rules);
    services_settle(&spec->services);
}

static int check_volumes(const struct volumes *volumes, struct error *err)
{
    for (size_t i = 0; i < volumes->len; i++) {
        for (size_t j = i + 1; j < volumes->len; j++) {
            autotext struct text shown = TEXT_NONE;

            if (strcmp(volumes->items[i].target, volumes->items[j].target) != 0)
                continue;
            node_show_text(volumes->items[i].target, &shown);
            return error_set(err, ERROR_INVALID, "volumes: two of them have the same place inside: %s",
                             text_string(&shown));
        }
    }
    return 0;
}

static int check_services(const struct services *services, struct error *err)
{
    return services->len <= SERVICES_MAX
               ? 0
               : error_set(err, ERROR_INVALID, "services: there are %zu, and may be %d", services->len,
                           SERVICES_MAX);
}

static int check_image(struct error *err, const char *image_place, const char *image,
                       const struct layer *ceiling)
{
    if (combine_image_allowed(ceiling, image))
        return 0;
    return refuse_wider(err, image_place ? image_place : "image", image, ceiling, &fields[FIELD_IMAGES]);
}

/* A flag that asks for something where nothing is reached at all: one of the two is a mistake. */
static int check_reach(const struct layer *owner, struct error *err)
{
    static const enum field_id idle[] = { FIELD_RULES, FIELD_HOST_SERVICES, FIELD_REGISTRIES, FIELD_RECORD,
                                          FIELD_REPLAY };

    for (size_t i = 0; owner->values.network == NETWORK_NONE && i < ARRAY_LEN(idle); i++) {
        const char *place = owner->said[idle[i]];

        if (place && strncmp(place, "--", 2) == 0)
            return error_set(err, ERROR_INVALID,
                             "%s has no effect where nothing is reached: network.mode is none (%s)", place,
                             owner->said[FIELD_NETWORK] ? owner->said[FIELD_NETWORK] : "the administrator's");
    }
    return 0;
}

static int finish(struct reading *reading)
{
    struct spec *spec = &reading->owner.values;
    const char *image_place = reading->owner.said[FIELD_IMAGE];
    const char *root_place = reading->owner.said[FIELD_ROOT];

    if (reading->admin.said[FIELD_ROOT] && !reading->admin.values.root)
        root_place = reading->admin.said[FIELD_ROOT];

    /* What nobody said is the default, and the ceiling holds for that too. */
    for (size_t i = 0; i < FIELD_COUNT; i++)
        (void)combine_narrow(&fields[i], &reading->admin, spec);
    if (check_image(reading->err, image_place, spec->image, &reading->admin) < 0 ||
        check_image(reading->err, image_place, spec->image, &reading->owner) < 0)
        return -1;
    strings_free(&spec->images);
    if (check_reach(&reading->owner, reading->err) < 0)
        return -1;
    if (!spec->root && is_root_inside(spec->user, reading->sources->uid))
        return refuse_root(reading->err, reading->owner.said[FIELD_USER], spec->user, root_place);
    if (check_volumes(&spec->volumes, reading->err) < 0 || check_services(&spec->services, reading->err) < 0 ||
        bundles_check(&spec->rules, reading->err) < 0)
        return -1;
    normalise(spec);
    return 0;
}

int spec_read(const struct spec_request *request, const struct spec_sources *sources, struct spec *out,
              struct spec_origins *origins, struct error *err)
{
    struct reading reading = { .sources = sources, .origins = origins, .err = err };
    int result = -1;

    *out = SPEC_NONE;
    reading.admin.kind = LAYER_ADMIN;
    reading.owner.kind = LAYER_OWNER;
    free(origins->home);
    origins->home = text_copy(sources->home);
    origins->uid = sources->uid;
    set_defaults(&reading.owner.values);
    if (read_admin(&reading) == 0 && read_owner(&reading, request) == 0) {
        if (request->command.len) {
            strings_free(&reading.owner.values.command);
            strings_copy(&reading.owner.values.command, &request->command);
        }
        result = finish(&reading);
    }
    if (result == 0) {
        *out = reading.owner.values;
        reading.owner.values = SPEC_NONE;
    }
    layer_free(&reading.admin);
    layer_free(&reading.owner);
    return result;
}

int spec_may_add_rule(const struct spec_sources *sources, const struct rule *rule, const char *place,
                      struct error *err)
{
    autoorigins struct spec_origins origins = SPEC_ORIGINS_NONE;
    struct reading reading = { .sources = sources, .origins = &origins, .err = err };
    autolayer struct layer said = { .kind = LAYER_OWNER };
    int result;

    reading.admin.kind = LAYER_ADMIN;
    *array_add(&said.values.rules) = rule_copy(rule);
    said.said[FIELD_RULES] = text_copy(place);
    result = read_admin(&reading) == 0 ? take(&reading, &said, true) : -1;
    layer_free(&reading.admin);
    layer_free(&reading.owner);
    return result;
}

int spec_read_json(const char *bytes, size_t len, const char *shown_path, struct spec *out, struct error *err)
{
    const struct form_context context = { 0 };
    autolayer struct layer said = { .kind = LAYER_OWNER };
    autotext struct text shown = TEXT_NONE;
    autonode struct node root = NODE_NONE;

    *out = SPEC_NONE;
    text_add_inert(&shown, shown_path);
    if (node_read_json(bytes, len, text_string(&shown), &root, err) < 0 ||
        layer_read(&root, text_string(&shown), "", PLACE_SPEC, &context, &said, err) < 0 ||
        check_volumes(&said.values.volumes, err) < 0)
        return -1;
    set_defaults(out);
    for (size_t i = 0; i < FIELD_COUNT; i++)
        if (said.said[i])
            value_move(&fields[i], &said.values, out);
    normalise(out);
    return 0;
}

/* The repository */

static int read_repository(const char *bytes, size_t len, const char *shown, const char *home,
                           struct layer *out, struct strings *notes, struct error *err)
{
    const struct form_context context = { .home = home };
    autonode struct node root = NODE_NONE;

    if (node_read_yaml(bytes, len, shown, &root, err) < 0)
        return -1;
    if (root.kind != NODE_MAP)
        return layer_complain(err, shown, &root, "the whole file", "must be a mapping of keys");
    for (size_t i = 0; i < root.len; i++) {
        const struct node *node = &root.items[i];

        if (strcmp(node->key, "policy") == 0) {
            if (layer_read(node, shown, "policy", PLACE_REPOSITORY, &context, out, err) < 0)
                return -1;
        } else if (strcmp(node->key, "wishes") == 0) {
            if (layer_check_wishes(node, shown, notes, err) < 0)
                return -1;
        } else {
            return layer_complain(err, shown, node, node->key,
                                  "is the value of a key that does not exist here; there are policy, below "
                                  "which a policy's keys stand, and wishes");
        }
    }
    return 0;
}

static const char *place_of(const struct spec_origins *origins, enum field_id field)
{
    const char *place = NULL;

    for (size_t i = 0; i < origins->len; i++)
        if (origins->items[i].field == field && origins->items[i].layer == LAYER_OWNER)
            place = origins->items[i].place;
    return place;
}

/* Everything that can go wrong, before anything is changed. */
static int check_repository(const struct spec *spec, const struct layer *said,
                            const struct spec_origins *origins, struct error *err)
{
    bool root = spec->root && !(said->said[FIELD_ROOT] && !said->values.root);

    if (check_image(err, place_of(origins, FIELD_IMAGE), spec->image, said) < 0)
        return -1;
    if (!root && spec->root && is_root_inside(spec->user, origins->uid))
        return refuse_root(err, place_of(origins, FIELD_USER), spec->user, said->said[FIELD_ROOT]);
    return 0;
}

static void narrow(struct spec *spec, const struct layer *said, struct spec_origins *origins)
{
    bool narrows[FIELD_COUNT] = { false };

    for (size_t i = 0; i < FIELD_COUNT; i++) {
        const struct field *culprit = combine_narrow(&fields[i], said, spec);

        if (culprit)
            narrows[culprit - fields] = true;
    }
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        autotext struct text value = TEXT_NONE;

        if (!said->said[i])
            continue;
        value_show(&fields[i], &said->values, &value);
        record(origins, said, i, narrows[i] ? ORIGIN_NARROWS : ORIGIN_NOTHING, text_string(&value));
    }
    normalise(spec);
}

int spec_narrow_by_repository(struct spec *spec, int workspace, const char *shown_path,
                              struct spec_origins *origins, struct error *err)
{
    autotext struct text bytes = TEXT_NONE, shown = TEXT_NONE;
    autolayer struct layer said = { .kind = LAYER_REPOSITORY };

    text_add_inert(&shown, shown_path);
    text_addf(&shown, "%s%s", text_ends(text_string(&shown), "/") ? "" : "/", SPEC_REPOSITORY_FILE);

    int missing = file_read_untrusted(workspace, SPEC_REPOSITORY_FILE, text_string(&shown), &bytes, err);

    if (missing)
        return missing < 0 ? -1 : 0;
    if (read_repository(text_string(&bytes), bytes.len, text_string(&shown), origins->home, &said,
                        &origins->notes, err) < 0 ||
        check_repository(spec, &said, origins, err) < 0)
        return -1;
    narrow(spec, &said, origins);
    return 0;
}

static int read_alone(const char *bytes, size_t len, const char *shown_path, const char *home,
                      struct layer *out, struct error *err)
{
    const struct form_context context = { .home = home };
    autostrings struct strings notes = STRINGS_NONE;
    autotext struct text shown = TEXT_NONE;
    autonode struct node root = NODE_NONE;

    text_add_inert(&shown, shown_path);
    if (out->kind == LAYER_REPOSITORY)
        return read_repository(bytes, len, text_string(&shown), home, out, &notes, err);
    if (node_read_yaml(bytes, len, text_string(&shown), &root, err) < 0)
        return -1;
    return layer_read(&root, text_string(&shown), "", out->kind == LAYER_ADMIN ? PLACE_ADMIN : PLACE_OWNER,
                      &context, out, err);
}

int spec_check_policy(const char *bytes, size_t len, const char *shown_path, enum layer_kind layer,
                      const char *home, struct error *err)
{
    autolayer struct layer said = { .kind = layer };

    return read_alone(bytes, len, shown_path, home, &said, err);
}

int spec_check_files(const char *bytes, size_t len, const char *path, enum layer_kind layer,
                     const struct spec_sources *sources, struct rule_list *rules, struct error *err)
{
    const struct file_rules trusted = trusted_by(sources, layer);
    autolayer struct layer said = { .kind = layer };

    if (read_alone(bytes, len, path, sources->home, &said, err) < 0)
        return -1;
    if (layer == LAYER_REPOSITORY) /* which names none */
        return 0;
    if (read_beside(sources, &said, path, err) < 0 || mocks_load(&said.values.rules, &trusted, err) < 0)
        return -1;
    *rules = said.values.rules;
    said.values.rules = RULE_LIST_NONE;
    return 0;
}
