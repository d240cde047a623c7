#pragma once

/* The value of `section.key` in the text of a git configuration file, as git would read it: the
 * last one counts, quotes and escapes are resolved, included files are not read.  NULL if it is
 * not there or not well-formed.  The caller frees. */
char *gitconfig_value(const char *config, const char *section, const char *key);
