#pragma once

/* Between files.c and files_tree.c only: requests and answers, checked. */

#include "inside/frames.h"
#include "keeper/files.h"

struct files {
    struct frames frames;
    uint32_t id; /* of the request that is under way */
    bool dead;   /* nothing more is believed, or nobody is there */
    bool watches;
    char path[FILES_PATH_MAX + 1]; /* as it was asked for, for messages */
    char name[FILES_PATH_MAX + 1], target[FILES_PATH_MAX + 1];
    unsigned char got[FRAMES_ROOM], put[FRAMES_ROOM];
};

/* The session is over because of what the other end said; -1. */
int files_liar(struct files *files, struct error *err);

/* ... or because of errno; -1. */
int files_broken(struct files *files, struct error *err);

int files_ask(struct files *files, uint32_t kind, struct files_request request, const char *path,
              const char *other, struct error *err);

/* The next frame of the request. */
int files_answer(struct files *files, struct frame *out, struct error *err);

/* A frame that must be OK or ERROR. */
int files_done(struct files *files, const struct frame *frame, struct files_done *out, struct error *err);

/* That what we send is over, or with a status not to be taken. */
int files_say_end(struct files *files, int status, struct error *err);

/* Bytes without NUL, as a string of at most FILES_PATH_MAX; false if they are not. */
bool files_string(char *out, const unsigned char *bytes, size_t len);
