#pragma once

/* The references of a repository, read from its files by our own code: git itself would follow what a
 * hostile repository says. */

#include <stdbool.h>
#include <stddef.h>

struct error;
struct merged;

enum { HASH_MAX = 64, REF_NAME_MAX = 512 };

struct ref {
    char *name; /* "refs/heads/main": a name that git allows, at most REF_NAME_MAX bytes */
    char hash[HASH_MAX + 1];
};

/* Sorted by name, each once. */
struct refs {
    struct ref *items;
    size_t len, cap;
    size_t odd; /* what was passed over: names that git does not allow, links, bytes that are no reference */
};

#define REFS_NONE ((struct refs){ 0 })
#define autorefs __attribute__((cleanup(refs_free)))

void refs_free(struct refs *refs);

/* All references below `top` ("refs/heads" or "refs"), loose ones before packed ones.  `digits` is the
 * length of a hash. */
int refs_read(const struct merged *common, const char *top, size_t digits, struct refs *out, struct error *err);

const struct ref *refs_find(const struct refs *refs, const char *name);

/* A reference that is called `name`, or is in the way of one that would be: "a" of "a/b", and the other
 * way round; NULL if there is none. */
const struct ref *refs_in_way(const struct refs *refs, const char *name);

/* --- without the file system ----------------------------------------------------------------- */

/* Whether git takes this for the full name of a reference. */
bool ref_is_name(const char *name);

/* The hash that the file of a reference, or HEAD, holds.  False: a symbolic one, or nothing of the kind. */
bool ref_parse(const char *bytes, size_t len, size_t digits, char out[HASH_MAX + 1]);

/* Adds what the file packed-refs says about references below `top`. */
void refs_parse_packed(const char *bytes, size_t len, const char *top, size_t digits, struct refs *out);

/* A branch under a name that can be typed, shown in a prompt and pasted without doing anything: bytes
 * other than letters, digits and ._-+=@,/ become %XX.  The caller frees. */
char *ref_plain_name(const char *branch);
