#pragma once

#include "spec/spec.h"

#include <stddef.h>

struct form_context;
struct text;

enum field_id {
    FIELD_COMMAND,
    FIELD_IMAGE,
    FIELD_IMAGES,
    FIELD_DIRECTORY,
    FIELD_WORKDIR,
    FIELD_WORKSPACE,
    FIELD_USER,
    FIELD_ROOT,
    FIELD_HOSTNAME,
    FIELD_SECCOMP,
    FIELD_TTY,
    FIELD_TIMEOUT,
    FIELD_MEMORY, /* from here on as enum limit_id */
    FIELD_CPUS,
    FIELD_PROCESSES,
    FIELD_OPEN_FILES,
    FIELD_FILE_SIZE,
    FIELD_DISK,
    FIELD_INODES,
    FIELD_OUTPUT,
    FIELD_ENFORCE,
    FIELD_ENV,
    FIELD_READ,
    FIELD_WRITE,
    FIELD_HIDE,
    FIELD_VOLUMES,
    FIELD_SERVICES,
    FIELD_NETWORK,
    FIELD_RULES,
    FIELD_HOST_SERVICES,
    FIELD_REGISTRIES,
    FIELD_REGISTRIES_FROM,
    FIELD_RECORD,
    FIELD_RECORD_SECRETS,
    FIELD_REPLAY,
    FIELD_UPSTREAM_PROXY,
    FIELD_PACKAGES,
    FIELD_PACKAGES_SIZE,
    FIELD_BUDGET_BYTES,
    FIELD_BUDGET_REQUESTS,
    FIELD_BUDGET_CONNECTIONS,
    FIELD_TOOLS,
    FIELD_CACHES,
    FIELD_REMOVE,
    FIELD_CHECKPOINTS_KEEP,
    FIELD_CHECKPOINTS_SPACE,
    FIELD_LIVE_BYTES,
    FIELD_LIVE_FILES,
    FIELD_COUNT,
};

/* What a member of struct spec is, and so how it is read, written and compared. */
enum field_type {
    TYPE_BOOL,     /* bool */
    TYPE_CHOICE,   /* an enum; `choices` has its names in order */
    TYPE_DURATION, /* uint64_t, milliseconds, 0: none */
    TYPE_BYTES,    /* struct limit: 4G */
    TYPE_NUMBER,   /* struct limit: 512 */
    TYPE_CPUS,     /* struct limit: 1.5 */
    TYPE_STRING,   /* char *, NULL: not said */
    TYPE_STRINGS,  /* struct strings */
    TYPE_ENV,      /* struct strings, each KEY=VALUE */
    TYPE_VOLUMES,  /* struct volumes */
    TYPE_SERVICES, /* struct services */
    TYPE_RULES,    /* struct rule_list */
};

/* Where a field may be said. */
enum field_place {
    PLACE_ADMIN = 1 << 0,      /* the administrator's policy */
    PLACE_OWNER = 1 << 1,      /* the owner's policy files */
    PLACE_REPOSITORY = 1 << 2, /* `policy:` in cove.yaml */
    PLACE_SPEC = 1 << 3,       /* a spec as JSON */
    PLACE_FLAG = 1 << 4,       /* the command line */
};

/* How a layer narrows the one before.  Whatever the rule, no value of a lower layer makes the
 * result wider: tests/unit/spec/combine_test.c holds every row to that. */
enum field_combine {
    COMBINE_OWNER,    /* only the owner says it: nothing to combine */
    COMBINE_AND,      /* a permission: off as soon as one layer says so */
    COMBINE_SMALLER,  /* 0 is none, so the largest */
    COMBINE_STRICTER, /* the later of the choices */
    COMBINE_UNION,    /* a list of prohibitions: all of them */
    COMBINE_GRANT,    /* host files: what lies in both (combine.c) */
    COMBINE_NETWORK,  /* names and addresses: what both allow (combine_network.c) */
    COMBINE_IMAGE,    /* must be among `images` of every layer that says it */
    COMBINE_IMAGES,   /* the ceiling for that */
};

/* What the command line does with a flag. */
enum flag_kind {
    FLAG_FIELD,    /* says the field it stands in */
    FLAG_POLICY,   /* --policy: one more policy file of the owner */
    FLAG_SPEC,     /* --spec: takes the place of the owner's own policy file */
    FLAG_ENV_FILE, /* --env-file: many -e */
    FLAG_IGNORED,  /* accepted out of habit */
};

struct flag {
    const char *name;     /* without the dashes; NULL: no flag */
    const char *argument; /* its name in help; NULL: takes none, says `fixed` */
    const char *fixed;
    const char *help;
    char letter; /* 0: no short form */
    enum flag_kind kind;
};

/* Checks one written value and gives its normal form.  False: `why` says what is allowed, as the
 * end of a sentence that begins with the value. */
typedef bool field_form(const struct form_context *context, const char *in, char **out, struct text *why);

enum { FIELD_FLAGS = 2, FIELD_CHOICES = 6 };

/* One option of a sandbox.  Flags, policy files, JSON, help, man page, reference and completion
 * all come from this row. */
struct field {
    const char *key;      /* in files and JSON; a dot goes one mapping deeper */
    size_t at;            /* offset in struct spec */
    const char *initial;  /* what holds if nobody says anything, as it would be written */
    const char *help;     /* of the key, one sentence without a full stop */
    field_form *form;     /* of a string or an item of a list */
    uint64_t least, most; /* of a duration or a limit */
    enum field_type type;
    enum field_combine combine;
    unsigned places;                    /* enum field_place, or-ed */
    const char *choices[FIELD_CHOICES]; /* ends with NULL */
    struct flag flags[FIELD_FLAGS];
};

extern const struct field fields[FIELD_COUNT];

/* Flags that belong to no field: --policy, --spec, --env-file, -i. */
extern const struct flag source_flags[];
extern const size_t source_flags_len;

/* NULL if no field has this key. */
const struct field *field_find(const char *key);

/* The field of a limit, and whether a field is one. */
static inline const struct field *field_of_limit(enum limit_id limit)
{
    return &fields[FIELD_MEMORY + limit];
}

static inline bool field_is_limit(const struct field *field)
{
    return field->type == TYPE_BYTES || field->type == TYPE_NUMBER || field->type == TYPE_CPUS;
}

/* Where the field lies in a spec. */
static inline void *field_of(const struct field *field, struct spec *spec)
{
    return (char *)spec + field->at;
}

static inline const void *field_of_const(const struct field *field, const struct spec *spec)
{
    return (const char *)spec + field->at;
}
