#pragma once

#include "base/array.h"
#include "spec/spec.h"

/* Where tools and package caches are.  One row a place: a tool that is not listed here is not
 * visible inside, and a listed one that is not installed costs one failed open. */
enum toolroot_kind { TOOLROOT_TOOL, TOOLROOT_CACHE };

enum { TOOLROOT_HIDE_MAX = 8 };

/* Texts in place: by address they would be put right, and so take memory, in every process of ours. */
struct toolroot {
    char path[40]; /* below the home directory unless it begins with a slash */
    enum tree_mode mode;
    enum toolroot_kind kind;
    char hide[TOOLROOT_HIDE_MAX][48]; /* patterns as in hide.h, all of them with a slash; "": no more */
    char suspect[16];                 /* a file that is hidden if it holds a password or token; "": none */
};

extern const struct toolroot toolroots[];
extern const size_t toolroots_len;
