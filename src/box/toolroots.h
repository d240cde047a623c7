#pragma once

#include "base/array.h"
#include "spec/spec.h"

/* Where tools and package caches are.  One row a place: a tool that is not listed here is not
 * visible inside, and a listed one that is not installed costs one failed open. */
enum toolroot_kind { TOOLROOT_TOOL, TOOLROOT_CACHE };

enum { TOOLROOT_HIDE_MAX = 8 };

struct toolroot {
    const char *path; /* below the home directory unless it begins with a slash */
    enum tree_mode mode;
    enum toolroot_kind kind;
    const char *hide[TOOLROOT_HIDE_MAX]; /* patterns as in hide.h, all of them with a slash */
    const char *suspect;                 /* a file that is hidden if it holds a password or token */
};

extern const struct toolroot toolroots[];
extern const size_t toolroots_len;
