#pragma once

/* Package files that are kept by their hash, and shared by sandboxes (decision 41).
 *
 *     a request that is allowed -> what does its registry say that the file is?   (FINDING, inquiry.h)
 *         -> the keeper: is it there?                                              (FETCHING)
 *             -> yes: it is answered from the file, whose hash is taken once more
 *             -> no: the server is asked as ever, and what passes is written to a file that the keeper has
 * given
 *
 * What a file is, is known only by what its registry said in this gateway, for this request.  Whatever goes
 * wrong on the way, the server is asked as if there was no cache.
 *
 * Must not: look at the cache for a request that was not allowed and noted; believe anything from inside but
 * the path; keep anybody waiting for long. */

#include "gateway/inquiry.h"
#include "gateway/tap.h"

struct answer;
struct connection;
struct gateway_noted;
struct head;
struct verdict;

struct cached {
    struct package package;
    struct checksum checksum; /* what its registry says; empty: nothing */
    struct inquiry *inquiry;  /* that is under way; or NULL */
    int fd;                   /* to read from or to write to; -1: neither */
    bool lent;                /* it counts as one of those that are */
    bool reads;
    uint64_t tag;             /* of what is written */
    uint64_t left;            /* to read */
    uint64_t passed;          /* and written */
    struct checksumming *sum; /* of that */
    struct tap tap;           /* where an answer passes that is to be written */
    bool fits;                /* the answer is the file, as far as its head tells */
};

/* Whether TLS to that host is looked into for package files only; and that it is not to be any more, because a
 * client does not take our certificate. */
bool cached_wants(const struct verdict *verdict);
void cached_avoid(const struct verdict *verdict);

/* A request with an allowed verdict: if it is for a package file, that is remembered. */
void cached_consider(struct connection *connection, const struct head *head);

/* Its verdict is noted.  False: it is as any other. */
bool cached_begin(struct connection *connection);
void cached_told(struct connection *connection);                                             /* FINDING */
void cached_given(struct connection *connection, const struct gateway_noted *noted, int fd); /* FETCHING */
void cached_late(struct connection *connection); /* in either state: as if there was no cache */

/* The file, as fast as the client takes it. */
bool cached_is_read(const struct cached *cached);
void cached_pass(struct connection *connection);

/* An answer of the server: its head, and each part of its body (tap.c). */
void cached_answer(struct cached *cached, const struct answer *answer);
void cached_add(struct cached *cached, const void *bytes, size_t len);

/* The exchange is over, with the whole answer or not.  Frees. */
void cached_end(struct cached *cached, bool whole);
