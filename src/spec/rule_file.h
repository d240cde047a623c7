#pragma once

/* Files that rules of a policy file name: certificates and bodies of mocks. */

#include "spec/network.h"

struct error;
struct file_rules;
struct form_context;
struct text;

/* The whole path of `written`: relative to the directory of `policy`, which is itself relative to `context`.
 * `what`: the key of the rule that has it. */
int rule_file_path(const struct rule *rule, const char *what, const char *written, const char *policy,
                   const struct form_context *context, char **out, struct error *err);

/* Reads one that nobody but `trusted` may have written. */
int rule_file_read(const struct rule *rule, const char *what, const char *file,
                   const struct file_rules *trusted, struct text *out, struct error *err);

/* "policy.yaml:3: network.rules: the ca of a.test, /x.pem, WHY" */
int rule_file_complain(struct error *err, const struct rule *rule, const char *what, const char *file,
                       const char *why);
