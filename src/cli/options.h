#pragma once

/* Reads the command line of one command by its table.
 *
 *     struct options options = OPTIONS_NONE;
 *     struct spec_origins origins = SPEC_ORIGINS_NONE;
 *     struct spec spec;
 *     char *owner_file = NULL;
 *     struct spec_sources sources;
 *
 *     if (options_parse(command, argc, argv, &options, err) < 0)    main() has done this
 *         ...
 *     spec_sources_usual(&sources, host.home, host.cwd, host.uid, host.environ, &owner_file);
 *     if (spec_read(&options.spec, &sources, &spec, &origins, err) < 0)
 *         ...
 *     workspace_find(...); spec_narrow_by_repository(&spec, workspace_fd, root, &origins, err);
 *
 * Rules: options stand before `--` and, where the words are a command to run, before the first word
 * that is none; `--flag value` and `--flag=value`, `-f value` and `-fvalue`; short ones without a
 * value can be joined (-it). */

#include "spec/read.h"

#include <stdbool.h>
#include <stddef.h>

struct command;
struct error;
struct text;

/* What is said on the command line and is no part of the sandbox itself. */
struct run_options {
    bool help;
    bool json;
    bool quiet;
    bool dry_run;
    bool packages;        /* of prune: package files, and no sandbox */
    bool list, take_back; /* of allow: what there is, --remove */
    bool print_plan;
    bool explain;
    bool prove;
    bool summary;
    bool force;
    bool all;
    bool stat;
    bool name_only;
    bool yes;
    bool interactive;
    bool commits, no_commits, only_commits;
    bool patch;
    bool ignored;
    bool binary; /* of diff: bytes of binary files of any size */
    bool tty, no_tty;
    bool detach;
    bool again; /* --continue */
    bool no_checkpoints;
    bool follow;
    bool timestamps;
    bool follow_link, archive;
    const char *report;         /* file for the report as JSON; NULL: none */
    const char *audit_policy;   /* a new file for what an audit has let through; NULL: none */
    const char *name;           /* of a new sandbox; NULL: none */
    const char *count;          /* a number, as it was written; NULL: not said */
    const char *older;          /* a duration, as it was written; NULL: not said */
    const char *output;         /* a file or directory, "-": stdout; NULL: not said */
    const char *to;             /* a directory; NULL: the workspace itself */
    const char *verify;         /* a command for sh -c; NULL: none */
    const char *timeout;        /* a duration, as it was written; NULL: none */
    const char *ttl, *idle;     /* durations, as they were written; NULL: none */
    const char *then;           /* "stop", "pause" or "remove"; NULL: not said */
    const char *workdir;        /* a directory inside; NULL: not said */
    const char *user;           /* inside; NULL: not said */
    const char *step;           /* a number, as it was written; NULL: not said */
    const char *service;        /* its name; NULL: not said */
    const char *address;        /* of a host; NULL: not said */
    const char *method;         /* of requests; NULL: any */
    const char *reviewed;       /* a digest; NULL: not said */
    const char *conflict;       /* "host", "sandbox" or "both"; NULL: not said */
    const char *jobs, *retries; /* numbers, as they were written; NULL: not said */
    const char *each, *results; /* files; NULL: none */
    const char *diffs;          /* a directory; NULL: none */
    const char *keep;           /* "winner", "all" or "none"; NULL: not said */
    const char *score;          /* a command for sh -c; NULL: none */
    const char *score_timeout;  /* a duration, as it was written; NULL: not said */
    struct strings score_files; /* PATH or SRC:DST */
    struct strings labels;      /* KEY or KEY=VALUE */
    struct strings autorun;     /* paths */
    struct strings exclude;     /* paths */
    struct strings env;         /* KEY=VALUE, or KEY for the host's value */
};

/* How an option_row changes struct run_options. */
enum option_type {
    OPTION_BOOL,   /* sets a bool */
    OPTION_STRING, /* borrows the word */
    OPTION_LIST,   /* adds a copy of it */
};

/* One option that is no field of the spec. */
struct option_row {
    const char *name; /* without the dashes; NULL ends the table */
    char letter;
    const char *argument; /* its name in help; NULL: takes none */
    const char *help;
    enum option_type type;
    size_t at; /* offset in struct run_options */
};

/* Every command has it without naming it: -h, --help. */
extern const struct option_row option_help;

/* The own options of `cove run`. */
extern const struct option_row options_of_run[];

struct options {
    struct run_options run;
    struct spec_request spec;      /* flags of fields; `command` has the words after the options */
    struct strings words;          /* the words after the options, for every other command */
    const char *verb;              /* one of the command's; NULL if it has none */
    const struct command *command; /* as it was typed, for options_again() */
    int argc;
    char **argv;
};

#define OPTIONS_NONE ((struct options){ 0 })
#define autooptions __attribute__((cleanup(options_free)))

void options_free(struct options *options);

/* All of them, for a new owner. */
struct options options_take(struct options *options);

/* argv[0] is the command's name and is skipped.  Strings in `out` point into argv. */
int options_parse(const struct command *command, int argc, char **argv, struct options *out, struct error *err);

/* A duration that was given to --NAME, in milliseconds. */
int options_duration(const char *name, const char *text, uint64_t *out, struct error *err);

/* The same once more, for somebody who takes them as well. */
int options_again(const struct options *options, struct options *out, struct error *err);

/* One option of a command, whichever table it comes from. */
struct option {
    const char *name, *argument, *help;
    const char *const *choices; /* ends with NULL; NULL: free text */
    char letter;
    const struct field *field; /* of the spec, or NULL */
    const struct flag *flag;   /* of the spec, or NULL */
    const struct option_row *row;
};

/* The option at place `index` of the command, those of the spec first, --help last; false past the end. */
bool option_at(const struct command *command, size_t index, struct option *out);
