#pragma once

/* What a person should know of the changes before they are shown or brought home, beyond what they are:
 * what of it can run, what is ignored by git, what tries not to be seen. */

#include "base/array.h"
#include "changes/classify.h"

#include <stdint.h>

struct change;
struct changes;
struct digest;
struct patch_source;

struct review_item {
    struct classify_verdict verdict;
    unsigned tricks; /* of enum trick (tricks.h) */
    char *hides;     /* what it makes git look away from, with bytes of the sandbox; NULL: nothing */
    bool folded;     /* ignored by git, harmless, and not asked for: one line for all of a directory */
};

/* Changes that are folded, by the directory they lie in. */
struct review_fold {
    char *directory; /* "": the workspace itself */
    bool whole;      /* it is itself ignored; else some files in it are */
    size_t files;
    uint64_t bytes;
};

struct review {
    struct review_item *items; /* one for each change */
    size_t items_len;
    struct digest *contents; /* one for each change: what was judged, after review_digest() */
    struct review_fold *folds;
    size_t len, cap; /* of `folds` */
    size_t autorun, build, folded, base_changed;
    char *too_long;   /* a file of the owner whose rules take too long to follow: what it ignores is shown; or
                         NULL */
    size_t elsewhere; /* folded too, because it is told in another way */
};

#define REVIEW_NONE ((struct review){ 0 })
#define autoreview __attribute__((cleanup(review_free)))

struct review_wish {
    const struct strings *named; /* asked for by name: never folded, nor what is below; or NULL */
    bool all;                    /* nothing that git ignores is folded */
    bool (*elsewhere)(
        const struct change *change); /* told in another way, unless it hides something; or NULL */
};

/* Adds flags to the changes. */
void review_changes(const struct patch_source *source, struct changes *changes, const struct review_wish *wish,
                    struct review *out);
void review_free(struct review *review);

/* What one change can run.  `in_bare` as in struct classify_input; `copy` is the new file, if it is not the one
 * in the layer any more, else -1; `content`, unless NULL, is set if its bytes were judged. */
void review_judge(const struct patch_source *source, const struct change *change, const char *in_bare, int copy,
                  struct classify_verdict *out, struct digest *content);

/* Contents of everything that is not folded.  What was judged by its bytes has theirs. */
void review_digest(const struct patch_source *source, const struct changes *changes, struct review *review);
