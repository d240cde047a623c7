#pragma once

/* Package files of registries, and what their registries say that these are: pure readers of hostile bytes.
 *
 * A path is recognised as that of a file by its form alone, which is that of its ecosystem.  Then the registry
 * is asked, at one path and in one way, and what it answers has the file's hash, or not: then it is an answer
 * as any other, and nothing is kept of it. */

#include "base/checksum.h"
#include "base/text.h"
#include "gateway/url.h"
#include "spec/network.h"

enum { PACKAGE_ANSWER_MAX = 8 << 20 }; /* of what a registry says about a file: indexes of large projects */

struct package {
    enum registry registry;
    struct url index;   /* whom to ask ... */
    struct text asked;  /* ... and for which path */
    const char *accept; /* and in which form */

    /* what the answer is compared with */
    struct text host, path; /* of the file */
    uint16_t port;
    struct text name, version; /* npm and cargo: of the package */
};

#define PACKAGE_NONE ((struct package){ 0 })
#define autopackage __attribute__((cleanup(package_free)))

void package_free(struct package *package);

/* Whether `path` of a host, in that form and with no query, is that of a package file of the rule's registry.
 * The index of the rule must stay. */
bool package_recognise(const struct rule *rule, const char *host, uint16_t port, const char *path,
                       struct package *out);

/* What the registry says that the file is; false: nothing that we could hold it to. */
bool package_read(const struct package *package, const char *bytes, size_t len, struct checksum *out);
