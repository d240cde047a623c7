#pragma once

struct error;
struct strings;

/* Adds to `found` the paths below the directory `dir`, relative to it, that match a pattern.
 *
 * A pattern without a slash matches a name at any depth; one with a slash (other than at its end)
 * counts from `dir`; `**` in it stands for any number of directories; a slash at its end restricts
 * it to directories.  Case counts.  A directory that matches is not looked into, nor is one that
 * cannot be read: it is hidden whole, because its owner could open it inside.
 *
 * The tree is walked by handles without following a link; a pattern that counts from `dir` costs
 * only the directories on its way.  What is created after the walk is not found by it.  Objects
 * of git (.git/objects) are not looked at: their names are not the user's. */
int hide_find(int dir, const struct strings *patterns, struct strings *found, struct error *err);

/* Refuses a pattern that cannot mean anything. */
int hide_check_pattern(const char *pattern, struct error *err);
