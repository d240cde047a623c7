#pragma once

/* The written forms of a rule: HOST[:PORT], and a mapping of keys. */

#include "spec/network.h"

struct form_context;
struct node;
struct text;

/* HOST[:PORT], which allows, with an address unless it is NULL.  False: `why` says what is allowed. */
bool rule_read_target(const struct form_context *context, const char *in, const char *address, struct rule *out,
                      struct text *why);

/* The same without an address. */
bool rule_read_text(const struct form_context *context, const char *in, struct rule *out, struct text *why);

/* An item of network.rules: that, or { host, port, action, address, methods, paths, ca, mock, rate,
 * bytes }.  False: *culprit is the value that is not allowed.  Keys and actions that a later version acts on
 * are refused, not ignored.  A `ca` is still as it is written: bundles_read() is next. */
bool rule_read_node(const struct form_context *context, const struct node *node, struct rule *out,
                    struct text *why, const struct node **culprit);

void rule_write(const struct rule *rule, struct node *out);

/* "example.com:8443", "deny example.com", "db:5432 at 10.0.0.5", "a.com with GET, HEAD on /v1, /v2", "a.com by
 * a ca of its own", "mock a.com on /v1 as 200", "a.com at 10/s for 1G" */
void rule_show(const struct rule *rule, struct text *out);

/* One order and no repetition. */
void rule_list_sort(struct rule_list *list);
