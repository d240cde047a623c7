#include "base/array.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/apply.h"
#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/diff.h"
#include "cli/export.h"
#include "cli/help.h"
#include "cli/ls.h"
#include "cli/policy.h"
#include "cli/prune.h"
#include "cli/rm.h"
#include "cli/run.h"
#include "cli/say.h"
#include "cli/show.h"
#include "cli/version.h"
#include "keeper/keeper.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

/* A command is a row here and a file of its own. */
const struct command commands[] = {
    { .name = "run",
      .summary = "run a command in a new sandbox",
      .usage = "[OPTIONS] [--] [COMMAND [ARG...]]",
      .description = "Runs COMMAND, or your shell, in a sandbox of its own: it sees this machine's programs, "
                     "the work tree around "
                     "the current directory, and nothing else of yours. It has no network. What it writes goes "
                     "to a layer of its "
                     "own, the files outside stay as they are. If it changed something the sandbox is "
                     "kept until cove rm removes it, and with --rm it is not.\n\n"
                     "The exit code is the command's; 128+N if signal N ended it, 124 if --timeout did, 126 if "
                     "it could not be "
                     "run, 127 if it was not found, 125 if Cove itself failed.",
      .rows = options_of_run,
      .spec = true,
      .run = cli_run },
    { .name = "ls",
      .summary = "list the sandboxes that are kept or run",
      .usage = "[OPTIONS]",
      .rows = options_of_ls,
      .run = cli_ls },
    { .name = "show",
      .summary = "tell about one sandbox",
      .usage = "[OPTIONS] [ID]",
      .description = "Tells all that is known of a sandbox. ID is its name or the beginning of its id, three "
                     "characters at least; without it, the last sandbox of the work tree around the current "
                     "directory is meant.\n\n"
                     "The exit code is 1 if there is no such sandbox.",
      .rows = options_of_show,
      .run = cli_show },
    { .name = "diff",
      .summary = "show what a sandbox changed in its workspace",
      .usage = "[OPTIONS] [ID] [PATH...]",
      .description =
          "Prints a patch, as git writes it, of what the sandbox changed: contents, binary ones too, modes, "
          "links and renames; git apply takes it. What a patch cannot say, an empty directory for example, and "
          "what is odd about a change stands in lines that begin with #. On a terminal no byte of a file or "
          "name does anything but be seen.\n\n"
          "Marked are changes that can run something on your machine (class A by merely being there, class B "
          "when you build, test or commit), that make git look away (hides), whose text is not what it looks "
          "like (Trojan Source), and files that you changed too (base changed since). What git ignores by your "
          "rules is one line a directory, unless --ignored or a PATH asks for it.\n\n"
          "ID is a sandbox's name or the beginning of its id; without it, the last sandbox of the "
          "work tree around the current directory is meant. PATHs are relative to the current directory.\n\n"
          "The exit code is 1 if there is no such sandbox.",
      .rows = options_of_diff,
      .run = cli_diff },
    { .name = "apply",
      .summary = "bring what a sandbox changed home",
      .usage = "[OPTIONS] [ID] [PATH...]",
      .description =
          "Brings the changes of a sandbox, or those at and below the PATHs, into the workspace. Each file is "
          "replaced as a whole, and only if it is still what the sandbox saw: what you changed meanwhile is a "
          "conflict and stays. Both sides of a conflict are shown; --conflict says what to do about it. "
          "Devices, "
          "links that lead out of the workspace and files in the place of hidden ones are refused. What git "
          "ignores stays where it is unless --ignored or a PATH asks for it.\n\n"
          "Some files run or steer a tool merely by being there: git hooks and configuration, .envrc, settings "
          "of editors and agents. They are asked for one by one, also with --yes; in a script --allow-autorun "
          "names them.\n\n"
          "With --verify the changes that were chosen, and no others, are laid on a fresh copy of the "
          "workspace, and COMMAND, one word for sh -c, runs there in a sandbox with the same image and "
          "policy, without network and input. Only if it exits with 0, and neither the sandbox nor the "
          "workspace (but .git) has changed meanwhile, they are brought home. What COMMAND writes is "
          "discarded.\n\n"
          "ID is a sandbox's name or the beginning of its id; without it, the last sandbox of the work tree "
          "around the current directory is meant. The exit code is 1 if there is no such sandbox, if "
          "something was refused or in conflict, or if COMMAND failed.",
      .rows = options_of_apply,
      .run = cli_apply },
    { .name = "export",
      .summary = "write what a sandbox made to an archive, or its commits as mails",
      .usage = "[OPTIONS] [ID] [PATH...]",
      .description =
          "Writes the files that the sandbox made or changed, or those at and below the PATHs, to a tar "
          "archive. "
          "Its first member, MANIFEST.json, has path, size, mode and SHA-256 of each. Nothing is brought into "
          "the "
          "workspace, and the archive of a sandbox is always the same. What cannot be part of it is named, and "
          "then nothing is written: devices, links that lead out of the workspace, absolute links, directories "
          "that were renamed.\n\n"
          "With --patch, writes the commits that were made in the sandbox as mails, one a commit, as git am "
          "takes "
          "them. git runs for that in a sandbox of its own, and nothing of the repository's configuration "
          "counts.\n\n"
          "ID is a sandbox's name or the beginning of its id; without it, the last sandbox of the work tree "
          "around the current directory is meant. The exit code is 1 if there is no such sandbox, or if "
          "something cannot be part of the archive.",
      .rows = options_of_export,
      .run = cli_export },
    { .name = "rm",
      .summary = "remove sandboxes, with what they changed",
      .usage = "[OPTIONS] ID...",
      .description = "Removes sandboxes that do not run, and prints their ids. ID is a name or the beginning "
                     "of an id, three characters at least.\n\n"
                     "The exit code is 1 if there is no such sandbox.",
      .rows = options_of_rm,
      .run = cli_rm },
    { .name = "prune",
      .summary = "remove old sandboxes, with what they changed",
      .usage = "[OPTIONS]",
      .rows = options_of_prune,
      .run = cli_prune },
    { .name = "policy",
      .summary = "show which policy holds here, and who said so",
      .usage = "show [OPTIONS]",
      .rows = options_of_policy,
      .verb = "show",
      .spec = true,
      .run = cli_policy },
    { .name = "completion",
      .summary = "print a completion script for bash, zsh or fish",
      .usage = "bash|zsh|fish",
      .run = completion_main },
    { .name = "help", .summary = "print help about a command", .usage = "[COMMAND]", .run = help_main },
    { .name = "version",
      .summary = "print the version",
      .usage = "[--json]",
      .rows = options_of_version,
      .run = cli_version },
    { .name = "docs",
      .summary = "write the generated documents",
      .usage = "WHAT",
      .hidden = true,
      .run = docs_main },
};
const size_t commands_len = ARRAY_LEN(commands);

static int dispatch(const struct command *command, int argc, char **argv, struct error *err)
{
    autooptions struct options options = OPTIONS_NONE;
    bool verb = command->verb && argc > 1 && strcmp(argv[1], command->verb) == 0;

    if (options_parse(command, argc - verb, argv + verb, &options, err) < 0)
        return -1;
    if (!options.run.help)
        return command->run(&options, err);
    say_help(command);
    return 0;
}

int main(int argc, char **argv)
{
    static const char *const spellings[][2] = { { "--help", "help" },
                                                { "-h", "help" },
                                                { "--version", "version" } };
    const char *name = argc > 1 ? argv[1] : "help";
    struct error err = { 0 };

    signal(SIGCHLD, SIG_DFL); /* whoever ignores it reaps children that we wait for */
    if (keeper_stdio_guard(&err) < 0)
        return EXIT_OWN_ERROR;
    for (size_t i = 0; i < ARRAY_LEN(spellings); i++)
        if (strcmp(name, spellings[i][0]) == 0)
            name = spellings[i][1];

    const struct command *command = command_find(name);
    int code =
        command ? dispatch(command, argc - (argc > 1), argv + (argc > 1), &err) : command_unknown(name, &err);

    return code < 0 ? say_error(&err) : code;
}
