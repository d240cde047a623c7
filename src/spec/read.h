#pragma once

/* From policy files and flags to a spec.
 *
 * Three layers: the administrator's file, a ceiling that grants nothing by itself; the owner's
 * (policy file, --policy files, --spec, flags), which later ones override and lists add up; and
 * the repository's `policy:`, which can only narrow.  What the owner says on the command line
 * above the administrator's ceiling is refused; what the owner's standing file says above it is
 * cut; what the repository says above it has no effect.  A layer that is missing restricts
 * nothing, one that cannot be read whole stops the start. */

#include "spec/fields.h"

#include <sys/types.h>

struct error;

#define SPEC_ADMIN_FILE "/etc/cove/policy.yaml"
#define SPEC_REPOSITORY_FILE "cove.yaml"

/* One flag as it stood on the command line.  Borrows all it points to. */
struct flag_use {
    const struct flag *flag;
    const struct field *field; /* NULL unless FLAG_FIELD */
    const char *value;         /* NULL if the flag takes none */
};

/* What the command line asked for: made by options_parse() in cli/, or by hand. */
struct spec_request {
    struct flag_use *items;
    size_t len, cap;
    struct strings command;
};

#define SPEC_REQUEST_NONE ((struct spec_request){ 0 })

void spec_request_free(struct spec_request *request);

/* Where to look.  Borrows all it points to.  A path that is NULL: that layer does not exist. */
struct spec_sources {
    const char *admin_file;
    uid_t admin_uid; /* who must own it and its directory */
    const char *owner_file;
    const char *home, *cwd; /* absolute, links resolved */
    uid_t uid;              /* the owner */
    char **environ;
};

/* The usual places.  `owner_file_buffer` holds the path that was put together; the caller frees
 * it after the sources were used. */
void spec_sources_usual(struct spec_sources *sources, const char *home, const char *cwd, uid_t uid,
                        char **variables, char **owner_file_buffer);

enum layer_kind { LAYER_ADMIN, LAYER_OWNER, LAYER_REPOSITORY };

enum origin_effect {
    ORIGIN_HOLDS,   /* as it was said */
    ORIGIN_CUT,     /* a ceiling left less of it, or nothing */
    ORIGIN_CEILING, /* the administrator's: a bound, no grant */
    ORIGIN_NARROWS, /* the repository's: what held before is less now */
    ORIGIN_NOTHING, /* the repository's: not narrower than what held, so without effect */
};

/* Who said what about which field. */
struct origin {
    enum field_id field;
    enum layer_kind layer;
    enum origin_effect effect;
    char *place; /* "--timeout" or "/etc/cove/policy.yaml:3", inert */
    char *value; /* as text, inert */
};

struct spec_origins {
    struct origin *items;
    size_t len, cap;
    struct strings notes; /* for the owner to read: wishes that were seen, and the like */
    char *home;           /* kept for the repository's layer */
    uid_t uid;
};

#define SPEC_ORIGINS_NONE ((struct spec_origins){ 0 })
#define autoorigins __attribute__((cleanup(spec_origins_free)))

void spec_origins_free(struct spec_origins *origins);

/* What holds, and below each key which layer said what: the text of `cove policy show`. */
void spec_origins_show(const struct spec_origins *origins, const struct spec *spec, struct text *out);

/* The same for programs: {"policy":{...},"said":[{"key","layer","place","value","effect"}...]}. */
void spec_origins_json(const struct spec_origins *origins, const struct spec *spec, struct text *out);

/* Administrator, owner and flags.  On failure `out` is empty and needs no release. */
int spec_read(const struct spec_request *request, const struct spec_sources *sources, struct spec *out,
              struct spec_origins *origins, struct error *err);

/* The repository's layer: `policy:` of cove.yaml in the directory `workspace`, which remains the
 * caller's; `shown_path` is its name in messages.  No such file: nothing happens.  On failure
 * `spec` still holds what it held before. */
int spec_narrow_by_repository(struct spec *spec, int workspace, const char *shown_path,
                              struct spec_origins *origins, struct error *err);

/* A spec from its own JSON, every bound checked again.  No layer has a say. */
int spec_read_json(const char *bytes, size_t len, const char *shown_path, struct spec *out, struct error *err);

/* Whether the administrator lets the owner add this rule; refused by name of both otherwise.  `place` is who
 * asks for it. */
int spec_may_add_rule(const struct spec_sources *sources, const struct rule *rule, const char *place,
                      struct error *err);

/* The bytes of a policy file as one layer, without any file that it names. */
int spec_check_policy(const char *bytes, size_t len, const char *shown_path, enum layer_kind layer,
                      const char *home, struct error *err);

/* The same, and whether the files that its rules name can be read; `rules` gets them with what those had. */
int spec_check_files(const char *bytes, size_t len, const char *path, enum layer_kind layer,
                     const struct spec_sources *sources, struct rule_list *rules, struct error *err);
