#pragma once

/* What was found, with all that it holds for: this program, this host, this user, this policy, this moment. */

#include "prove/rows.h"

#include <time.h>

struct text;

struct statement {
    struct timespec date;        /* CLOCK_REALTIME */
    const char *version, *build; /* of the program */
    const char *system, *release, *machine;
    const char *user;
    uid_t uid;
    const char *ids;    /* how they are mapped: "shifted", "own" or "subordinate" */
    const char *policy; /* hash of it, without the command */
    const char *image, *workspace, *profile;
    int landlock_abi; /* 0: none */
    const struct limits *limits;
    const struct verdict *verdicts;
};

size_t statement_count(const struct statement *statement, enum held held);

/* A layer is broken where a row is that any of its walls would have held; shown if a row that it alone holds
 * is. */
enum held statement_layer(const struct statement *statement, enum layer layer);

/* "held", "gap", "unknown". */
const char *held_name(enum held held);

/* Canonical: keys sorted, no white space, one line.  Its member `sha256` is that of the document without it. */
void statement_json(const struct statement *statement, struct text *out);
