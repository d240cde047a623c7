#pragma once

#include "changes/apply.h"

struct changed;

/* `cove apply --verify`: the chosen changes alone, laid on a fresh copy of the tree that they go to, and a
 * command that judges them there, in a sandbox of its own. */
struct verifying {
    const struct changed *changed;
    struct apply apply;   /* as it will be carried out */
    apply_wanted *wanted; /* which changes were chosen */
    void *owner;
    const char *command; /* for sh -c */
    const char *timeout; /* as it was written; NULL: none */
};

enum verified {
    VERIFIED_YES,
    VERIFIED_NO,        /* the command failed, or something changed meanwhile: `err` says what */
    VERIFIED_NOT_WHOLE, /* not all of the changes can be brought home: `results` say why */
};

/* -1 if nothing could be tried.  Leaves nothing; `results` are those on the copy. */
int verifying_run(const struct verifying *verifying, struct apply_result *results, enum verified *out,
                  struct error *err);
