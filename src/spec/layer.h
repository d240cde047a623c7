#pragma once

/* What one layer says: a spec of which only the fields that are said count. */

#include "spec/read.h"

struct form_context;
struct node;

struct layer {
    enum layer_kind kind;
    struct spec values;
    char *said[FIELD_COUNT]; /* where, inert: "/etc/cove/policy.yaml:3" or "--timeout"; NULL: not said */
};

#define autolayer __attribute__((cleanup(layer_free)))

void layer_free(struct layer *layer);

/* Reads the mapping `root` into `out`, whose kind is set.  `places` are the enum field_place from
 * which the document comes; `above` is the key that the mapping stands under, "" for a whole file. */
int layer_read(const struct node *root, const char *shown, const char *above, unsigned places,
               const struct form_context *context, struct layer *out, struct error *err);

/* Checks `wishes:` of a repository and adds a note for each: they grant nothing. */
int layer_check_wishes(const struct node *wishes, const char *shown, struct strings *notes, struct error *err);

/* "FILE:LINE: KEY: 'VALUE' WHY", the one form of complaint about a document. */
int layer_complain(struct error *err, const char *shown, const struct node *node, const char *key,
                   const char *why);
