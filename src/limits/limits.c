#include "limits/limits.h"

#include "base/array.h"
#include "base/error.h"
#include "base/text.h"
#include "spec/fields.h"
#include "spec/forms.h"
#include "spec/spec.h"

#include <string.h>

static const struct {
    const char *name, *words;
    bool hard;
} way_words[] = {
    [WAY_NONE] = { "none", "not kept", false },
    [WAY_CGROUP2] = { "cgroup-v2", "hard, cgroup v2", true },
    [WAY_MANAGER] = { "cgroup-v2-delegated", "hard, cgroup v2 of the service manager", true },
    [WAY_CGROUP1] = { "cgroup-v1", "hard, cgroup v1", true },
    [WAY_RLIMIT] = { "rlimit", "hard, rlimit", true },
    [WAY_RELAY] = { "counted", "hard, counted", true },
    [WAY_SAMPLED] = { "sampled", "sampled", false },
    [WAY_PER_USER] = { "rlimit-per-user", "of each user inside, rlimit", false },
    [WAY_AFFINITY] = { "affinity", "asked for, affinity", false },
};

static bool by_cgroup(const struct cgroup_place *place, enum cgroup_kind kind, enum controller controller)
{
    return place->kind == kind && place->have & 1U << controller;
}

#define CGROUP_WAY(kind_, controller_)                                                                         \
    static bool can_##kind_##_##controller_(const struct cgroup_place *place, const struct limit_means *means) \
    {                                                                                                          \
        (void)means;                                                                                           \
        return by_cgroup(place, CGROUP_##kind_, CONTROLLER_##controller_);                                     \
    }

CGROUP_WAY(V2, MEMORY)
CGROUP_WAY(V2, CPU)
CGROUP_WAY(V2, PIDS)
CGROUP_WAY(MANAGER, MEMORY)
CGROUP_WAY(MANAGER, CPU)
CGROUP_WAY(MANAGER, PIDS)
CGROUP_WAY(V1, MEMORY)
CGROUP_WAY(V1, CPU)
CGROUP_WAY(V1, PIDS)

static bool can_always(const struct cgroup_place *place, const struct limit_means *means)
{
    (void)place, (void)means;
    return true;
}

static bool can_look(const struct cgroup_place *place, const struct limit_means *means)
{
    (void)place;
    return !means->blind;
}

static bool can_one_user(const struct cgroup_place *place, const struct limit_means *means)
{
    (void)place;
    return !means->many_users;
}

/* The best first.  A new way is a row here and what carries it out: a knob in cgroup.c, a limit in
 * init/command.c, a look in keeper/meter.c. */
static const struct {
    enum limit_id limit;
    enum limit_way way;
    bool (*can)(const struct cgroup_place *place, const struct limit_means *means);
} ways[] = {
    { LIMIT_MEMORY, WAY_CGROUP2, can_V2_MEMORY },  { LIMIT_MEMORY, WAY_MANAGER, can_MANAGER_MEMORY },
    { LIMIT_MEMORY, WAY_CGROUP1, can_V1_MEMORY },  { LIMIT_MEMORY, WAY_SAMPLED, can_look },
    { LIMIT_CPUS, WAY_CGROUP2, can_V2_CPU },       { LIMIT_CPUS, WAY_MANAGER, can_MANAGER_CPU },
    { LIMIT_CPUS, WAY_CGROUP1, can_V1_CPU },       { LIMIT_CPUS, WAY_AFFINITY, can_always },
    { LIMIT_PROCESSES, WAY_CGROUP2, can_V2_PIDS }, { LIMIT_PROCESSES, WAY_MANAGER, can_MANAGER_PIDS },
    { LIMIT_PROCESSES, WAY_CGROUP1, can_V1_PIDS }, { LIMIT_PROCESSES, WAY_RLIMIT, can_one_user },
    { LIMIT_PROCESSES, WAY_PER_USER, can_always }, { LIMIT_OPEN_FILES, WAY_RLIMIT, can_always },
    { LIMIT_FILE_SIZE, WAY_RLIMIT, can_always },   { LIMIT_DISK, WAY_SAMPLED, can_always },
    { LIMIT_INODES, WAY_SAMPLED, can_always },     { LIMIT_OUTPUT, WAY_RELAY, can_always },
};

/* How to get what cannot be had here: the end of a refusal. */
static const char *const remedies[LIMIT_COUNT] = {
    [LIMIT_MEMORY] = "run as root, or in a session of systemd with cgroup v2 (systemd-run --user --scope)",
    [LIMIT_CPUS] =
        "run as root, or in a session of systemd with cgroup v2 whose manager has the cpu controller",
    [LIMIT_PROCESSES] = "leave out --root, or run where there are cgroups",
    [LIMIT_DISK] = "put the state directory (COVE_HOME) on a file system of that size",
    [LIMIT_INODES] = "put the state directory (COVE_HOME) on a file system with so many",
};

void limits_free(struct limits *limits)
{
    cgroup_place_free(&limits->place);
    *limits = LIMITS_NONE;
}

bool limit_way_is_hard(enum limit_way way)
{
    return way_words[way].hard;
}

const char *limit_way_name(enum limit_way way)
{
    return way_words[way].name;
}

const char *limit_way_words(enum limit_way way)
{
    return way_words[way].words;
}

const char *limit_name(enum limit_id limit)
{
    return strchr(field_of_limit(limit)->key, '.') + 1;
}

void limit_show(enum limit_id limit, uint64_t max, struct text *out)
{
    text_addf(out, "%s ", limit_name(limit));
    form_amount_show(field_of_limit(limit)->type, max, out);
}

bool limits_any(const struct limits *limits, enum limit_way way)
{
    for (size_t i = 0; i < LIMIT_COUNT; i++)
        if (limits->items[i].max && limits->items[i].way == way)
            return true;
    return false;
}

static bool must_be_hard(const struct spec *spec, enum limit_id limit)
{
    /* What nobody asked for is no reason to refuse. */
    bool usual = limit == LIMIT_PROCESSES && spec->limits[limit].max == LIMIT_PROCESSES_USUAL;

    return spec->limits[limit].hard || (spec->enforce == ENFORCE_HARD && !usual);
}

static int refuse(enum limit_id limit, const struct limit_choice *choice, struct error *err)
{
    autotext struct text shown = TEXT_NONE;

    limit_show(limit, choice->max, &shown);
    error_set(err, ERROR_UNSUPPORTED, "limit %s: %s here it would be: %s", text_string(&shown),
              choice->way == WAY_NONE ? "nothing can keep it, and" : "it must be hard, and",
              limit_way_words(choice->way));
    return error_hint(err, "%s", remedies[limit]);
}

int limits_choose_at(const struct spec *spec, const struct limit_means *means, struct cgroup_place *place_take,
                     struct limits *out, struct error *err)
{
    struct limits chosen = { .place = *place_take };

    *place_take = CGROUP_PLACE_NONE;
    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        struct limit_choice *choice = &chosen.items[ways[i].limit];
        uint64_t max = spec->limits[ways[i].limit].max;

        if (max && choice->way == WAY_NONE && ways[i].can(&chosen.place, means))
            choice->way = ways[i].way;
    }
    for (size_t i = 0; i < LIMIT_COUNT; i++) {
        struct limit_choice *choice = &chosen.items[i];

        choice->max = spec->limits[i].max;
        if (choice->max && !limit_way_is_hard(choice->way) &&
            (choice->way == WAY_NONE || must_be_hard(spec, (enum limit_id)i))) {
            refuse((enum limit_id)i, choice, err);
            limits_free(&chosen);
            return -1;
        }
    }
    *out = chosen;
    return 0;
}

/* A group is made only for who asked for something that needs one: the usual bound on processes is kept
 * for nothing by an rlimit, unless there is a group anyway. */
static unsigned wanted(const struct spec *spec, const struct limit_means *means)
{
    const struct limit *limits = spec->limits;
    unsigned set = (limits[LIMIT_MEMORY].max ? 1U << CONTROLLER_MEMORY : 0U) |
                   (limits[LIMIT_CPUS].max ? 1U << CONTROLLER_CPU : 0U);
    bool asked = limits[LIMIT_PROCESSES].max && limits[LIMIT_PROCESSES].max != LIMIT_PROCESSES_USUAL;

    if (asked || (limits[LIMIT_PROCESSES].max && (set || (means->many_users && limits[LIMIT_PROCESSES].hard))))
        set |= 1U << CONTROLLER_PIDS;
    return set;
}

int limits_choose(const struct spec *spec, const struct limit_means *means, struct limits *out,
                  struct error *err)
{
    struct cgroup_place place = CGROUP_PLACE_NONE;
    unsigned set = wanted(spec, means);

    if (set)
        cgroup_place_find(set, &place);
    return limits_choose_at(spec, means, &place, out, err);
}
