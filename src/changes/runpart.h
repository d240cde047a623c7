#pragma once

/* Whether the part of a file that runs something has changed.  A file that cannot be read as what
 * its name says counts as changed: who plants something need not be well-formed.
 *
 * `keys` are patterns (base/glob.h) with blanks between them, in small letters except for JSON; the
 * first that matches decides: the key is harmless, or with `!` before it, it runs.  A key that none matches
 * runs. */

#include "changes/classify.h"

/* True if it changed; `part` then says what, in printable ASCII. */
typedef bool runpart_check(const struct classify_input *in, const char *keys, char part[CLASSIFY_PART_MAX]);

/* Members of the outermost object. */
runpart_check runpart_json;

/* Lines of the form `key = value`; a key is called `section.key`, without blanks and quotes. */
runpart_check runpart_toml;
runpart_check runpart_pairs;      /* each line stands alone */
runpart_check runpart_ini;        /* a line that is indented deeper belongs to the key before it */
runpart_check runpart_gitconfig;  /* a line may end with a backslash and go on */
runpart_check runpart_properties; /* the same; Java's, without sections */

/* Lines that have one of `keys` in them; with `^` before it, that begin with it.  No patterns here. */
runpart_check runpart_words;

/* .gitattributes; no keys. */
runpart_check runpart_attributes;

/* Python's *.pth: not if it is binary data, as trained models are that end alike; no keys. */
runpart_check runpart_pth;

/* The file can be started as a program, or could before; no keys. */
runpart_check runpart_executable;

/* It is a plain file that nobody can start; no keys.  For rows that exempt. */
runpart_check runpart_plain;
