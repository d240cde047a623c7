#pragma once

/* What is started by itself in a sandbox that stays: a list of programs with names. */

#include "base/array.h"

#include <stdbool.h>
#include <stdint.h>

struct node;
struct text;

enum {
    SERVICES_MAX = 32,
    SERVICE_NAME_MAX = 32,
    SERVICE_TEXT_MAX = 16 << 10, /* bytes of a command */
    SERVICE_WITHIN_MS = 60000,   /* unless said */
    SERVICE_WITHIN_MOST_MS = 3600000,
};

struct service {
    char *name;         /* [a-z0-9-]; NULL: not said, until services_settle() */
    char *run, *ready;  /* for a shell; ready NULL: it is ready when it runs */
    uint64_t within_ms; /* it must be ready so long after it was started */
};

struct services {
    struct service *items;
    size_t len, cap;
};

void services_free(struct services *services);

/* One more: as a flag has it, a command; or as a document has it, a command or a mapping.  False: nothing
 * changed, and `why` says what is allowed. */
bool services_read_text(const char *in, struct services *into, struct text *why);
bool services_read_node(const struct node *node, struct services *into, struct text *why);

void services_write(const struct services *services, struct node *out);
void services_show(const struct services *services, struct text *out);
void services_move(struct services *from, struct services *into);

/* Of two with one name the later stays; who has none gets that of its program. */
void services_settle(struct services *services);

/* -1: there is none of that name. */
int services_find(const struct services *services, const char *name);
