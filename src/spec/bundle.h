#pragma once

/* The certificates that a rule's `ca` stands for.  In a policy file it names a file, from there on it is what
 * that file had: whoever gets a rule needs no file, and a sandbox that is started again believes the same. */

#include "spec/network.h"

struct error;
struct file_rules;
struct form_context;

enum {
    BUNDLE_MAX = 64 << 10,   /* bytes of one */
    BUNDLES_MAX = 512 << 10, /* of all in a spec, which has to stay readable */
};

/* Whether it is certificates, and not a file's name. */
bool bundle_is_read(const char *ca);

/* Replaces the names of files by what they have, of which only certificates are kept: a key that stands in the
 * same file stays there.  `policy` is the file that names them, itself relative to `context`: they are relative
 * to its directory, and as hard to write for others as `trusted` says.  Missing, or without a certificate: an
 * error that says where it was said. */
int bundles_read(struct rule_list *rules, const char *policy, const struct form_context *context,
                 const struct file_rules *trusted, struct error *err);

/* Whether all of them together are small enough. */
int bundles_check(const struct rule_list *rules, struct error *err);
