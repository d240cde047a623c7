#pragma once

/* Reads a tar as its bytes come, in any pieces, and puts its members below a directory (lay.h).
 *
 * Known are the form of 1988 with prefixes, pax headers (path, linkpath, size, mtime) and GNU's long names.
 * What is told and left out: absolute names, names with "..", devices and pipes.  Anything else that is not in
 * order, a wrong sum, a number that is none, an extended header beyond UNTAR_EXTENDED_MAX, ends it: nobody
 * guesses where the next member begins. */

#include "inside/lay.h"

enum { UNTAR_BLOCK = 512, UNTAR_EXTENDED_MAX = 32 << 10 };

struct untar {
    struct lay lay; /* begun by the caller */

    enum {
        UNTAR_HEADER,
        UNTAR_CONTENT,
        UNTAR_EXTENDED,
        UNTAR_PADDING,
        UNTAR_OVER
    } state;   /* our own from here on */
    char kind; /* of the extended header that is being read: x, L, K or g */
    unsigned char block[UNTAR_BLOCK];
    size_t block_len;
    uint64_t left, padding; /* bytes of content, or of an extended header; zeros behind them */
    bool writes;            /* the content goes into a file */
    unsigned blanks;        /* blocks of zeros */
    size_t extended_len;
    char extended[UNTAR_EXTENDED_MAX + 1];
    char path[FILES_PATH_MAX + 1], target[FILES_PATH_MAX + 1]; /* from an extended header, else "" */
    bool has_size, has_mtime;
    uint64_t size;
    int64_t mtime;
    uint32_t nsec;
};

/* -1 and errno: EBADMSG if it is no tar, else what stopped everything. */
int untar_bytes(struct untar *untar, const unsigned char *bytes, size_t len);

/* At the end of the bytes: -1 and EBADMSG if it is cut off. */
int untar_end(struct untar *untar);
