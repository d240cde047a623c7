#pragma once

/* One field of a spec, whatever its type: read, written, shown and moved by its row. */

#include "spec/fields.h"

struct form_context;
struct node;
struct text;

/* One written value, as a flag has it.  A list gets one more item, everything else is replaced.
 * False: nothing changed and `why` says what is allowed. */
bool value_read_text(const struct field *field, const struct form_context *context, const char *in,
                     struct spec *into, struct text *why);

/* A value of a document.  False: `why` says what is allowed and *culprit is the value that is not;
 * `into` then holds a part of it. */
bool value_read_node(const struct field *field, const struct form_context *context, const struct node *node,
                     struct spec *into, struct text *why, const struct node **culprit);

void value_write(const struct field *field, const struct spec *spec, struct node *out);

/* As it would be written in a flag or a file, on one line, inert. */
void value_show(const struct field *field, const struct spec *spec, struct text *out);

/* Moves the field: lists are added to, everything else is replaced. */
void value_move(const struct field *field, struct spec *from, struct spec *into);

void value_free(const struct field *field, struct spec *spec);

bool value_is_list(const struct field *field);

/* "default, strict": the names of a choice, for messages and help. */
void value_choices(const struct field *field, struct text *out);

void volumes_free(struct volumes *volumes);
void volumes_add(struct volumes *volumes, const char *source, const char *target, enum tree_mode mode);
