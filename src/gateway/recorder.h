#pragma once

/* Writes exchanges down, each when it is over, to a file that the keeper has opened and that can only grow. */

#include "gateway/take.h"
#include "gateway/tap.h"

struct answer;
struct head;
struct verdict;

struct recorder {
    int fd; /* -1: nothing is recorded */
    uint64_t len;
    size_t under_way; /* exchanges that are being recorded, for all of which there is room */
    bool secrets;     /* as they are */
    bool failed;      /* something could not be written */
};

/* An exchange that is being recorded. */
struct recording {
    struct take take;
    struct tap request, response;
    bool sent; /* to a server, in part at least */
};

/* Before files are given up: how much the file has already.  After another gateway, a new line is begun. */
void recorder_begin(struct recorder *recorder, int fd, bool secrets, unsigned generation);

/* Whether one more exchange, however large, could be written down. */
bool recorder_has_room(const struct recorder *recorder);

/* A request that goes on; NULL if nothing is recorded, or it does not. */
struct recording *recording_begin(struct recorder *recorder, const struct head *head,
                                  const struct verdict *verdict);
void recording_answer(struct recording *recording, const struct recorder *recorder,
                      const struct answer *answer);

/* It is over, and freed; written down if anything of it was sent.  Each part may be NULL or not `whole`. */
void recording_end(struct recording *recording, struct recorder *recorder, bool request_whole,
                   bool answer_whole);
