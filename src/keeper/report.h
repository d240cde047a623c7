#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct delivery;
struct error;
struct findings;
struct limits;
struct live_end;
struct result;
struct strings;
struct text;

/* Microseconds from the start of the program to the end of each part of a run. */
struct phases {
    uint64_t planned, cloned, ready, started, exited, empty;
};

/* All that is known of a run when it is over.  Everything is borrowed; a NULL is left out of the
 * summary and is null in JSON. */
struct requests;

struct report {
    const char *id, *spec_hash;
    const char *name; /* of the sandbox; may be NULL */
    const char *const *argv;
    const char *workspace, *image, *user;
    const char *mode;               /* how the workspace was seen: "cow", "rw" ... */
    struct timespec started, ended; /* CLOCK_REALTIME */
    const struct result *result;
    const struct live_end *live;     /* of --workspace live */
    const struct phases *phases;     /* where the time of the start and the end went; may be NULL */
    const char *changes;             /* where they went: "were discarded (--rm)" */
    const struct strings *stuck;     /* that could not be taken out, each with its reason; may be NULL */
    const struct strings *set_aside; /* paths taken out of a workspace that was written through; may be NULL */
    bool kept;                       /* the sandbox is still there, with its changes */
    const struct limits *limits;     /* may be NULL */
    const struct strings *enforced;  /* the layers of protection that were on, one word each */
    const struct findings *findings; /* of --explain */
    const struct requests *requests; /* to the network; may be NULL */
    const char *record, *replay;     /* files of --record and --replay; NULL: none */
    bool audit;                      /* the network was audited ... */
    const char *audit_policy;        /* ... and the policy that it comes to is in this file; NULL: in none */
    const char *no_network;          /* why there is not even a gateway; NULL: there is one */
    unsigned width; /* of the terminal that the summary is for; 0: lines are as long as they are */
};

/* One object, keys in a fixed order, a newline at the end. */
void report_json(const struct report *report, struct text *out);

/* To a new file that takes the name at once and whole, readable for its owner only; a name that
 * is no regular file itself (a link such as /dev/stdout, a FIFO) is kept, and added to. */
int report_write(const struct report *report, const struct delivery *place, struct error *err);

/* A few lines for people.  Text that came from inside is inert in it. */
void report_summary(const struct report *report, bool colour, struct text *out);

/* What an audit has let through; nothing if there was none. */
void report_audit(const struct report *report, bool colour, struct text *out);

/* What was refused: by the gateway, and as far as --explain has looked. */
void report_explained(const struct report *report, bool colour, struct text *out);

/* Only on a terminal, and not against NO_COLOR. */
bool report_wants_colour(int fd);

/* Columns of the terminal; 0 if it is none. */
unsigned report_width(int fd);
